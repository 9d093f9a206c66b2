import { slotsOf } from '../data/node.ts';
import { formatCpus, parseCpus } from '../data/shape.ts';
import type { VmItem } from '../data/vm-list.ts';
import { hashOf } from '../state/route.ts';
import { ready, store, vms, waiting } from '../state/state.ts';
import { CpuMap } from './cpu-map.tsx';
import { Detail, Facts, VerdictBadge } from './detail.tsx';
import { History } from './history.tsx';

/** One running VM: its state, its place and its history. */
export function VmDetail({ name }: { readonly name: string }) {
  const places = vms.value.filter((vm) => vm.name === name);
  const waits = waiting.value.find(({ namespace, vm, name: pod }) => `${namespace}/${vm ?? pod}` === name);
  return (
    <Detail title={name} kind="VM" back={{ list: 'vms' }}>
      {places.length === 0 && (
        <p>
          {ready.value ? 'No running VM or pod of this name has dedicated CPUs or a CPU mask.' : 'Loading …'}{' '}
          {waits && <a href={hashOf({ list: 'waiting', chosen: waits.key })}>It is waiting: see why.</a>}
        </p>
      )}
      {places.map((vm) => (
        <Place key={vm.key} vm={vm} />
      ))}
      <p class="about">
        For its state and remedies, run: <code>kubectl plumbline explain {name}</code>
      </p>
      <History of="vm" name={name} />
    </Detail>
  );
}

function Place({ vm }: { readonly vm: VmItem }) {
  const node = store.nodes.get(vm.node);
  const shape = node?.shape;
  const cpus = vm.containers.flatMap(([, list]) => parseCpus(list));
  const slots = new Set(shape ? slotsOf(shape, formatCpus(cpus)) : []);
  const cores = new Set([...slots].map((slot) => shape?.slots[slot]?.core));
  const cells = (shape?.cells ?? []).filter(({ firstCore, cores: count }) =>
    [...cores].some((core) => core !== undefined && core >= firstCore && core < firstCore + count),
  );
  const padding = vm.containers.reduce((sum, [, , padded]) => sum + padded, 0);
  const facts: (readonly [string, string])[] = [
    ...(cpus.length > 0
      ? ([
          ['Dedicated CPUs', `${cpus.length}: ${formatCpus(cpus)}`],
          ['Cores', `${cores.size}${padding > 0 ? `, including ${padding} CPU added for whole cores` : ''}`],
          ['NUMA node', cells.map(({ id }) => id).join(', ') || 'unknown'],
          [
            'Networks there',
            cells.flatMap(({ physnets, tunnel }) => [...physnets, ...(tunnel ? ['tunnel'] : [])]).join(', ') || 'none',
          ],
        ] as const)
      : []),
    ...(vm.mask === '' ? [] : ([['CPU mask', vm.mask]] as const)),
  ];
  return (
    <>
      <p class="state">
        <VerdictBadge verdict={vm.verdict} reason={vm.reason} /> on{' '}
        <a href={hashOf({ list: 'nodes', chosen: vm.node })}>{vm.node}</a>
      </p>
      {vm.text !== '' && (
        <p
          class={
            vm.verdict === 'ok' || vm.verdict === 'stopped'
              ? 'about'
              : vm.verdict === 'broken'
                ? 'problem'
                : 'problem is-mild'
          }
        >
          {vm.text}
        </p>
      )}
      <Facts facts={facts} />
      {node && shape && cells.length > 0 && (
        <div class="where">
          <CpuMap node={node} shape={shape} only={new Set(cells.map(({ id }) => id))} lookedAt={slots} />
        </div>
      )}
    </>
  );
}
