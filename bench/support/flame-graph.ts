/** The used fields of a V8 profile (`node --cpu-prof`). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  /** Node ids, one for each sample, and microseconds between samples. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Calls of functions with the same name from the same callers. */
export interface Frame {
  readonly name: string;
  /** Microseconds in this frame and its callees. */
  total: number;
  readonly children: Map<string, Frame>;
}

const WIDTH = 1200;
const ROW = 18;
const TOP = 28;
/** Width in pixels below which a frame is left out, and width of one character of its label. */
const NARROWEST = 2;
const CHARACTER = 6.6;

/** The frames of a profile, without idle time. The root's name is `all`. */
export function framesOf({ nodes, samples, timeDeltas }: CpuProfile): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const all: Frame = { name: 'all', total: 0, children: new Map() };
  samples.forEach((sample, at) => {
    const names: string[] = [];
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
      names.push(byId.get(id)?.callFrame.functionName || '(anonymous)');
    }
    if (names[0] === '(idle)') return;
    const spent = timeDeltas[at + 1] ?? 0;
    let frame = all;
    frame.total += spent;
    // The last name is V8's root.
    for (const name of names.slice(0, -1).reverse()) {
      const child: Frame = frame.children.get(name) ?? { name, total: 0, children: new Map() };
      frame.children.set(name, child);
      child.total += spent;
      frame = child;
    }
  });
  return all;
}

/** A flame graph as SVG that adapts to light and dark mode: callers above callees, width by time. */
export function flameGraph(root: Frame, title: string): string {
  const boxes: string[] = [];
  let rows = 0;
  const draw = (frame: Frame, x: number, row: number): void => {
    const width = (frame.total / root.total) * WIDTH;
    if (width < NARROWEST) return;
    rows = Math.max(rows, row + 1);
    const share = ((frame.total / root.total) * 100).toFixed(1);
    const room = Math.floor((width - 6) / CHARACTER);
    const label = room < 3 ? '' : escaped(frame.name.length <= room ? frame.name : `${frame.name.slice(0, room - 1)}…`);
    const [y, shade] = [TOP + row * ROW, hash(frame.name) % 4];
    boxes.push(
      `<g><title>${escaped(frame.name)} ${share} %</title><rect class="s${shade}" x="${x.toFixed(1)}" y="${y}" width="${(width - 0.5).toFixed(1)}" height="${ROW - 1}"/>${label && `<text x="${(x + 3).toFixed(1)}" y="${y + 13}">${label}</text>`}</g>`,
    );
    let at = x;
    for (const child of [...frame.children.values()].sort((a, b) => b.total - a.total)) {
      draw(child, at, row + 1);
      at += (child.total / root.total) * WIDTH;
    }
  };
  draw(root, 0, 0);
  const height = TOP + rows * ROW + 4;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>
text { font: 11px monospace; fill: #1f2328 } .h { font: 13px sans-serif }
.s0 { fill: #f6c28b } .s1 { fill: #f4b183 } .s2 { fill: #f9d9a8 } .s3 { fill: #f2a779 }
@media (prefers-color-scheme: dark) {
.h { fill: #e6edf3 } .s0 { fill: #c08a4e } .s1 { fill: #b87d4b } .s2 { fill: #cda566 } .s3 { fill: #b06f42 }
}
</style>
<text class="h" x="3" y="18">${escaped(title)}</text>
${boxes.join('\n')}
</svg>
`;
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const hash = (text: string) => [...text].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) >>> 0, 7);
