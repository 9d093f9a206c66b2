import { tableLines } from '../support/table.ts';
import { countText, joinParts, type Line, paint, wrap } from '../support/terminal.ts';
import type { DemandOutcome, Simulation } from './simulate.ts';

/** The result for people: what fits, what prevents more, and what is wasted. */
export function simulationLines(result: Simulation, notes: readonly string[], width: number, wide = false): Line[] {
  const { vms, cpus, nodes, splitCores, placements } = result;
  const columns = Math.max(40, Math.min(width, 120));
  const rows = vms.map(({ name, cpus: each, padding, asked, placed }) => {
    const of = padding === 0 ? `${each}` : `${each} (${padding} ${padding === 1 ? 'completes' : 'complete'} a core)`;
    return [name, of, asked === undefined ? 'as many as fit' : `${asked}`, `${placed}`];
  });
  const [head = '', ...body] = tableLines(['VM', 'CPUs', 'asked', 'placed'], rows);
  const usable = cpus.total - cpus.reserved - cpus.before;
  const share = (part: number) =>
    `${part} CPUs (${usable === 0 ? 0 : ((100 * part) / usable).toFixed(1)} % of those that VMs can have)`;
  const before = cpus.before === 0 ? '' : `, ${cpus.before} already owned`;
  return [
    `${countText(nodes, 'node')}, ${cpus.total} CPUs: ${cpus.reserved} reserved${before}`,
    '',
    [paint('bold', head)],
    ...body.map((line, i) => [paint(vms[i] && isShort(vms[i]) ? 'red' : undefined, line)]),
    ...vms.filter((vm) => Object.keys(vm.refusals).length > 0).flatMap((vm) => refusalLines(vm, columns)),
    '',
    [paint('bold', 'CPUs')],
    `  used       ${share(cpus.given)}`,
    `  padding    ${share(cpus.padding)} complete whole cores`,
    `  free       ${share(cpus.free)}`,
    `  stranded   ${share(cpus.stranded)}: free on nodes where none of these VMs fits`,
    ...(splitCores > 0 ? [`  ${countText(splitCores, 'core')} used in part`] : []),
    ...(wide
      ? [
          '',
          [paint('bold', 'Nodes')],
          ...Object.entries(placements)
            .sort()
            .map(([node, names]) => [`  ${node}: `, ...joinParts(grouped(names), ', ')]),
        ]
      : []),
    ...(notes.length > 0
      ? ['', ...notes.flatMap((note) => wrap(`(${note})`, columns)).map((line) => [paint('dim', line)])]
      : []),
  ];
}

export const isShort = ({ asked, placed }: DemandOutcome) => asked !== undefined && placed < asked;

function refusalLines({ name, refusals, asked, placed }: DemandOutcome, columns: number): string[] {
  const reasons = Object.entries(refusals)
    .sort(([, a], [, b]) => b - a)
    .map(([text, nodes]) => `${countText(nodes, 'node')}: ${text}`);
  const left = asked === undefined ? 'one more' : `${asked - placed} more`;
  return ['', ...wrap(`no room for ${left} ${name}: ${reasons.join('; ')}`, columns, '  ')];
}

function grouped(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, number]) => (number === 1 ? name : `${number} ${name}`));
}
