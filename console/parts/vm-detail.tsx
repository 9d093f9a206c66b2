import { cpuSlots } from '../data/node.ts';
import { cellsOf, formatCpus, parseCpus } from '../data/shape.ts';
import type { VmItem } from '../data/vm-list.ts';
import { hashOf } from '../state/route.ts';
import { ready, store, vms, waiting } from '../state/state.ts';
import { DataAge } from './ago.tsx';
import { CpuMap } from './cpu-map.tsx';
import { Detail, Facts, VerdictBadge } from './detail.tsx';
import { History } from './history.tsx';
import { Interference } from './interference.tsx';
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
          {waits && <a href={hashOf({ list: 'waiting', chosen: name })}>It is waiting: see why.</a>}
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
  const cpus = vm.containers.flatMap(([, list]) => parseCpus(list));
  const slots = new Set(shape ? cpuSlots(shape, formatCpus(cpus)) : []);
  const cores = new Set([...slots].map((slot) => shape?.slots[slot]?.core));
  const cells = shape ? cellsOf(shape, slots) : [];
  const padding = vm.containers.reduce((sum, [, , padded]) => sum + padded, 0);
  const networks = cells.flatMap(({ physnets, tunnel }) => [...physnets, ...(tunnel ? ['tunnel'] : [])]);
  const facts: [string, string][] = [];
  if (cpus.length > 0) {
    facts.push(['Dedicated CPUs', `${cpus.length}: ${formatCpus(cpus)}`]);
    facts.push(['Cores', `${cores.size}${padding > 0 ? `, including ${padding} CPU added for whole cores` : ''}`]);
    facts.push(['NUMA node', cells.map(({ id }) => id).join(', ') || 'unknown']);
    facts.push(['Networks on its NUMA nodes', networks.join(', ') || 'none']);
  }
  if (vm.mask !== '') facts.push(['CPU mask', vm.mask]);
  return (
    <>
      <p class="state">
        <VerdictBadge verdict={vm.verdict} reason={vm.reason} /> on{' '}
        <a href={hashOf({ list: 'nodes', chosen: vm.node })}>{vm.node}</a> <DataAge since={vm.silentSince} />
      </p>
      {vm.text !== '' && <p class={TEXT_CLASS[vm.verdict]}>{vm.text}</p>}
      <Facts facts={facts} />
      {node && shape && cells.length > 0 && (
        <div class="where">
          <CpuMap node={node} shape={shape} only={new Set(cells.map(({ id }) => id))} lookedAt={slots} />
        </div>
      )}
      {cpus.length > 0 && vm.silentSince === undefined && <Interference node={vm.node} name={vm.name} />}
    </>
  );
}
