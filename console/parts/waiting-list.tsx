import type { PodItem } from '../data/store.ts';
import { go } from '../state/route.ts';
import { ready, waiting } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { VirtualGrid } from './virtual-grid.tsx';

const COLUMNS = [
  { key: 'who', title: 'VM or pod' },
  { key: 'since', title: 'Waits' },
  { key: 'wants', title: 'Wants' },
  { key: 'why', title: 'Why' },
] as const;

const ROW = 58;

/** Pods without a node, or that cannot start on their node; the longest waiting first. */
export function WaitingList({ chosen }: { readonly chosen: string | undefined }) {
  const pods = waiting.value;
  return (
    <VirtualGrid
      label="Waiting VMs and pods"
      columns={COLUMNS}
      count={pods.length}
      rowHeight={ROW}
      keyOf={(index) => pods[index]?.uid ?? ''}
      cells={(index) => cellsOf(pods[index])}
      chosen={pods.findIndex(({ key }) => key === chosen)}
      onChoose={(index) => go({ list: 'waiting', chosen: pods[index]?.key ?? '' })}
      busy={!ready.value}
      empty={ready.value ? 'Nothing is waiting: every VM has a node.' : 'Loading …'}
    />
  );
}

function cellsOf(pod: PodItem | undefined) {
  if (pod === undefined) return [];
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
      {whyOf(pod)}
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

/** The text of `plumbline explain`. */
export function whyOf({ text }: PodItem): string {
  return text ?? '';
}
