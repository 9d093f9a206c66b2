import { formatCpus, parseCpus } from '../data/shape.ts';
import { cpuCount, VM_FILTERS, type VmItem } from '../data/vm-list.ts';
import { go, vmQuery } from '../state/route.ts';
import { matchingVms, vms } from '../state/state.ts';
import { DataAge } from './ago.tsx';
import { VerdictBadge } from './detail.tsx';
import { ListControls, sortable } from './list-controls.tsx';
import { VirtualGrid } from './virtual-grid.tsx';

export function VmList({ chosen }: { readonly chosen: string | undefined }) {
  const matching = matchingVms.value;
  return (
    <>
      <ListControls
        what="VMs"
        placeholder="Search by VM, namespace, node or reason"
        query={vmQuery}
        filters={VM_FILTERS}
        items={vms.value}
        matchCount={matching.length}
      />
      <VirtualGrid
        label="Started VMs"
        columns={[
          sortable(vmQuery, 'name', 'VM'),
          sortable(vmQuery, 'node', 'Node'),
          sortable(vmQuery, 'cpus', 'CPUs'),
          sortable(vmQuery, 'verdict', 'State'),
        ]}
        items={matching}
        keyOf={({ key }) => key}
        cells={cellsOf}
        isChosen={({ name }) => name === chosen}
        onChoose={({ name }) => go({ list: 'vms', chosen: name })}
        empty={<Empty />}
      />
    </>
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
  const count = cpuCount(vm);
  return [
    <>
      <span class="name" title={rest.join('/')}>
        {rest.join('/')}
      </span>
      <span class="networks">{namespace}</span>
    </>,
    <span key="node" class="name is-plain" title={vm.node}>
      {vm.node}
    </span>,
    <>
      <span class="number">{count > 0 ? count : '–'}</span>
      <span class="networks cpus">
        {count > 0 ? formatCpus(vm.containers.flatMap(([, cpus]) => parseCpus(cpus))) : `mask ${vm.mask}`}
      </span>
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
