import { countWords } from '../data/shape.ts';
import type { PodItem } from '../data/store.ts';
import { dedicatedCpus, type VmItem } from '../data/vm-list.ts';
import { lists } from '../state/route.ts';
import { matchingVms, matchingWaiting, vms, waiting } from '../state/state.ts';
import { Ago, DataAge } from './ago.tsx';
import { Name, VerdictBadge } from './detail.tsx';
import { List } from './list.tsx';

export function VmList({ chosen }: { readonly chosen: string | undefined }) {
  return (
    <List
      name="vms"
      label="Started VMs"
      what="VMs"
      placeholder="Search by VM, namespace, node or reason"
      state={lists.vms}
      items={vms.value}
      matching={matchingVms.value}
      columns={{ name: 'VM', node: 'Node', cpus: 'CPUs', verdict: 'State' }}
      keyOf={({ key }) => key}
      nameOf={({ name }) => name}
      cells={cellsOf}
      chosen={chosen}
      empty={<Empty />}
    />
  );
}

function Empty() {
  if (vms.value.length > 0) return <>No VM matches. Clear the search or choose “All VMs”.</>;
  return (
    <>
      No VM with dedicated CPUs or a CPU mask runs. A VM gets whole cores with <code>dedicatedCpuPlacement</code> and
      the annotation <code>kubevirt.io/CPUManagerPolicyBetaOptions: full-pcpus-only</code>.
    </>
  );
}

function cellsOf(vm: VmItem) {
  const [namespace = '', ...rest] = vm.name.split('/');
  const cpus = dedicatedCpus(vm);
  return [
    <Name key="name" name={rest.join('/')} below={namespace} />,
    <span key="node" class="name is-plain" title={vm.node}>
      {vm.node}
    </span>,
    <>
      <span class="number">{cpus.isEmpty ? '–' : cpus.size}</span>
      <span class="networks cpus">{cpus.isEmpty ? `mask ${vm.mask}` : `${cpus}`}</span>
    </>,
    <>
      <VerdictBadge verdict={vm.verdict} reason={vm.reason} />
      <DataAge since={vm.silentSince} />
      {vm.text !== '' && (vm.verdict !== 'ok' || vm.reason === 'Migrating') && (
        <span class="why about" title={vm.text}>
          {vm.text}
        </span>
      )}
    </>,
  ];
}

export function WaitingList({ chosen }: { readonly chosen: string | undefined }) {
  return (
    <List
      name="waiting"
      label="Waiting VMs and pods"
      what="waiting VMs and pods"
      placeholder="Search by VM, namespace, network or reason"
      state={lists.waiting}
      items={waiting.value}
      matching={matchingWaiting.value}
      columns={{ name: 'VM or pod', since: 'Waiting for', requests: 'Requests', verdict: 'State' }}
      keyOf={({ uid }) => uid}
      nameOf={({ key }) => key}
      cells={waitingCells}
      chosen={chosen}
      empty={
        waiting.value.length > 0
          ? 'Nothing matches. Clear the search or choose “All waiting”.'
          : 'Nothing is waiting: every VM has a node.'
      }
    />
  );
}

function waitingCells(pod: PodItem) {
  const { namespace, name, vm, since, verdict = 'waiting', reason = 'Pending', text } = pod;
  return [
    <Name key="name" name={vm ?? name} below={`${vm === undefined ? 'pod' : 'VM'} in ${namespace}`} />,
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
  const dedicated = `${countWords(cpus, 'CPU')}${wholeCores ? ' as whole cores' : ''}`;
  return `${cpus === 0 ? shared : dedicated}${required.length > 0 ? ` near ${required.join(', ')}` : ''}`;
}
