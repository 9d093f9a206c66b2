import type { InterferencePicture } from '../data/wire.ts';
import { useAnswer } from '../state/ask.ts';

const REFRESH_MILLISECONDS = 30_000;
/** Pixels. */
const WIDTH = 240;
const HEIGHT = 40;
/** Full height of the chart at least, so that noise looks like noise. */
const MIN_SCALE = 0.02;

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

/** What interrupts and other work took from a VM in the last twenty minutes, by the node's agent. */
export function Interference({ node, name }: { readonly node: string; readonly name: string }) {
  const answer = useAnswer<InterferencePicture>(`/interference?node=${encodeURIComponent(node)}`, REFRESH_MILLISECONDS);
  const vm = answer !== undefined && 'data' in answer ? answer.data.vms.find((vm) => vm.name === name) : undefined;
  if (vm === undefined) return null;
  const values = vm.history.map((share) => share ?? 0);
  const scale = Math.max(MIN_SCALE, ...values);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((share, i) => `${(i * step).toFixed(1)},${(HEIGHT * (1 - share / scale)).toFixed(1)}`);
  return (
    <section aria-labelledby="interference">
      <h3 id="interference">Interrupts and other work on its CPUs</h3>
      <p>
        {vm.share === null ? 'Unknown' : percent(vm.share)} in the last minute
        {vm.sources.length > 0 && <span class="about">; most frequent: {vm.sources.slice(0, 3).join(', ')}</span>}
      </p>
      {values.length > 1 && (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" class="interference">
          <title>{`Share of its CPUs in the last ${Math.round(values.length / 2)} minutes, at most ${percent(Math.max(...values))}`}</title>
          <polyline points={points.join(' ')} fill="none" stroke="currentColor" stroke-width="1.5" />
        </svg>
      )}
    </section>
  );
}
