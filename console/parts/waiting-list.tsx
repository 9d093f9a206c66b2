import type { PodItem } from '../data/store.ts';
import { go } from '../state/route.ts';
import { waiting } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { VirtualGrid } from './virtual-grid.tsx';

const COLUMNS = [
  { key: 'who', title: 'VM or pod' },
  { key: 'since', title: 'Waits' },
  { key: 'wants', title: 'Wants' },
  { key: 'why', title: 'Why' },
] as const;

/** Pods without a node, or that cannot start on their node; the longest waiting first. */
export function WaitingList({ chosen }: { readonly chosen: string | undefined }) {
  return (
    <VirtualGrid
      label="Waiting VMs and pods"
      columns={COLUMNS}
      items={waiting.value}
      keyOf={({ uid }) => uid}
      cells={cellsOf}
      isChosen={({ key }) => key === chosen}
      onChoose={({ key }) => go({ list: 'waiting', chosen: key })}
      empty="Nothing is waiting: every VM has a node."
    />
  );
}

function cellsOf(pod: PodItem) {
  const { namespace, name, vm, since } = pod;
  return [
    <>
      <span class="name">{vm ?? name}</span>
      <span class="networks">
        {vm === undefined ? 'pod in ' : 'VM in '}
        {namespace}
      </span>
    </>,
    since === undefined ? '' : <Ago key="since" time={since} />,
    wantsOf(pod),
    <span key="why" class="why">
      {pod.text}
    </span>,
  ];
}

export function wantsOf({ cpus, wholeCores, networks }: Pick<PodItem, 'cpus' | 'wholeCores' | 'networks'>): string {
  const required = networks.filter(([, affinity]) => affinity === 'required').map(([network]) => network);
  return [
    cpus === 0 ? 'shared CPUs' : `${cpus} CPUs${wholeCores ? ' as whole cores' : ''}`,
    ...(required.length > 0 ? [`near ${required.join(', ')}`] : []),
  ].join(' ');
}
