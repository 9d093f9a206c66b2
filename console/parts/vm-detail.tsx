import { cpuSlots } from '../data/node.ts';
import { cellsOf } from '../data/shape.ts';
import { dedicatedCpus, type VmItem } from '../data/vm-list.ts';
import type { InterferencePicture } from '../data/wire.ts';
import { dataOf, useAnswer } from '../state/ask.ts';
import { ready, store, vms, waiting } from '../state/state.ts';
import { DataAge } from './ago.tsx';
import { CpuMap } from './cpu-map.tsx';
import { Detail, Facts, Link, VerdictBadge } from './detail.tsx';
import { History } from './history.tsx';
import { DiagnosisDetails, useDiagnosis } from './remedies.tsx';

export function VmDetail({ name }: { readonly name: string }) {
  const vmItems = vms.value.filter((vm) => vm.name === name);
  const needsHelp = vmItems.some(({ verdict }) => verdict !== 'ok');
  const answer = useDiagnosis('vm', needsHelp ? name : undefined);
  const waits = waiting.value.some(({ key }) => key === name);
  return (
    <Detail title={name} kind="VM" back={{ list: 'vms' }}>
      {vmItems.length === 0 && (
        <p>
          {ready.value ? 'No running VM or pod of this name has dedicated CPUs or a CPU mask.' : 'Loading …'}{' '}
          {waits && (
            <Link list="waiting" chosen={name}>
              It is waiting: see why.
            </Link>
          )}
        </p>
      )}
      {vmItems.map((vm) => (
        <VmOnNode key={vm.key} vm={vm} />
      ))}
      {vmItems.length > 0 && (
        <DiagnosisDetails answer={answer} remedies={vmItems.flatMap(({ remedies }) => remedies)} />
      )}
      <History of="vm" name={name} above={vmItems.map(({ text }) => text).join('\n')} />
    </Detail>
  );
}

const TEXT_CLASS = {
  ok: 'about',
  stopped: 'about',
  waiting: 'problem is-mild',
  degraded: 'problem is-mild',
  broken: 'problem',
} as const;

function VmOnNode({ vm }: { readonly vm: VmItem }) {
  const node = store.nodes.get(vm.node);
  const shape = node?.shape;
  const cpus = dedicatedCpus(vm);
  const slots = new Set(shape ? cpuSlots(shape, cpus) : []);
  const cores = new Set([...slots].map((slot) => shape?.slots[slot]?.core));
  const cells = shape ? cellsOf(shape, slots) : [];
  const padding = vm.containers.reduce((sum, [, , padded]) => sum + padded, 0);
  const networks = cells.flatMap(({ physnets, tunnel }) => [...physnets, ...(tunnel ? ['tunnel'] : [])]);
  const facts: [string, string][] = [];
  if (!cpus.isEmpty) {
    facts.push(['Dedicated CPUs', `${cpus.size}: ${cpus}`]);
    facts.push(['Cores', `${cores.size}${padding > 0 ? `, including ${padding} CPU added for whole cores` : ''}`]);
    facts.push(['NUMA node', cells.map(({ id }) => id).join(', ') || 'unknown']);
    facts.push(['Networks on its NUMA nodes', networks.join(', ') || 'none']);
  }
  if (vm.mask !== '') facts.push(['CPU mask', vm.mask]);
  return (
    <>
      <p class="state">
        <VerdictBadge verdict={vm.verdict} reason={vm.reason} /> on <Link list="nodes" chosen={vm.node} />{' '}
        <DataAge since={vm.silentSince} />
      </p>
      {vm.text !== '' && <p class={TEXT_CLASS[vm.verdict]}>{vm.text}</p>}
      <Facts facts={facts} />
      {node && shape && cells.length > 0 && (
        <div class="where">
          <CpuMap node={node} shape={shape} cells={cells} lookedAt={slots} />
        </div>
      )}
      {!cpus.isEmpty && vm.silentSince === undefined && <Interference node={vm.node} name={vm.name} />}
    </>
  );
}

/** Pixels. */
const WIDTH = 240;
const HEIGHT = 40;
/** Full height of the chart at least, so that noise looks like noise. */
const MIN_SCALE = 0.02;

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

/** What interrupts and other work took from a VM in the last twenty minutes, by the node's agent. */
function Interference({ node, name }: { readonly node: string; readonly name: string }) {
  const answer = useAnswer<InterferencePicture>(`/interference?node=${encodeURIComponent(node)}`);
  const vm = dataOf(answer)?.vms.find((each) => each.name === name);
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
