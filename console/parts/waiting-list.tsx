import { countWords } from '../data/shape.ts';
import type { PodItem } from '../data/store.ts';
import { WAITING_FILTERS } from '../data/waiting-list.ts';
import { go, waitingQuery } from '../state/route.ts';
import { matchingWaiting, waiting } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { VerdictBadge } from './detail.tsx';
import { ListControls, sortable } from './list-controls.tsx';
import { VirtualGrid } from './virtual-grid.tsx';

export function WaitingList({ chosen }: { readonly chosen: string | undefined }) {
  return (
    <>
      <ListControls
        what="waiting VMs and pods"
        placeholder="Search by VM, namespace, network or reason"
        query={waitingQuery}
        filters={WAITING_FILTERS}
        items={waiting.value}
        matchCount={matchingWaiting.value.length}
      />
      <VirtualGrid
        label="Waiting VMs and pods"
        columns={[
          sortable(waitingQuery, 'name', 'VM or pod'),
          sortable(waitingQuery, 'since', 'Waiting for'),
          { key: 'requests', title: 'Requests' },
          sortable(waitingQuery, 'verdict', 'State'),
        ]}
        items={matchingWaiting.value}
        keyOf={({ uid }) => uid}
        cells={cellsOf}
        isChosen={({ key }) => key === chosen}
        onChoose={({ key }) => go({ list: 'waiting', chosen: key })}
        empty={
          waiting.value.length > 0
            ? 'Nothing matches. Clear the search or choose “All waiting”.'
            : 'Nothing is waiting: every VM has a node.'
        }
      />
    </>
  );
}

function cellsOf(pod: PodItem) {
  const { namespace, name, vm, since, verdict = 'waiting', reason = 'Pending', text } = pod;
  return [
    <>
      <span class="name" title={vm ?? name}>
        {vm ?? name}
      </span>
      <span class="networks">
        {vm === undefined ? 'pod in ' : 'VM in '}
        {namespace}
      </span>
    </>,
    since === undefined ? '–' : <Ago key="since" time={since} />,
    <span key="requests" class="why">
      {requestsOf(pod)}
    </span>,
    <>
      <VerdictBadge verdict={verdict} reason={reason} />
      <span class="why about" title={text}>
        {text}
      </span>
    </>,
  ];
}

type Requests = Pick<PodItem, 'noLauncher' | 'cpus' | 'wholeCores' | 'mask' | 'networks'>;

export function requestsOf({ noLauncher, cpus, wholeCores, mask, networks }: Requests): string {
  if (noLauncher) return 'no launcher';
  const required = networks.filter(([, affinity]) => affinity === 'required').map(([network]) => network);
  const shared = mask === undefined ? 'shared CPUs' : `CPU mask ${mask}`;
  return [
    cpus === 0 ? shared : `${countWords(cpus, 'CPU')}${wholeCores ? ' as whole cores' : ''}`,
    ...(required.length > 0 ? [`near ${required.join(', ')}`] : []),
  ].join(' ');
}
