import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { localnet } from '../../cli/demo/vms.ts';
import { createKubeClient } from '../../kube/api-transport.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import {
  EVENTS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../sandbox/api-server/errors.ts';
import { VirtController } from '../../sandbox/virt-controller/virt-controller.ts';
import { startControlPlane } from '../../test/real/control-plane-stage.ts';
import { FOREIGN_DEFINITIONS } from '../../test/real/webhook/crds-fixture.ts';
import { silent } from '../../test/support/logger.ts';
import { createRemoteClient } from '../../test/support/remote-client.ts';
import { type Contender, prepare } from './contenders.ts';
import { allocatable, cellOf, type Fleet, hostOf, PHYSNETS } from './fleets.ts';
import type { History, VmHistory } from './history.ts';
import { type Admitted, createKubelets } from './kubelets.ts';
import { machineOf, needOf, type Stream, type StreamVm, VM_NAMESPACE } from './stream.ts';

export interface PlayOptions {
  readonly contender: Contender;
  readonly fleet: Fleet;
  readonly stream: Stream;
  readonly onFault: (error: unknown) => void;
  readonly progress: (text: string) => void;
}

const READ = [PODS, NODES, EVENTS, NETWORK_ATTACHMENT_DEFINITIONS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES];
/** Kubelets and KubeVirt's controller are not measured, so the API server must not throttle them. */
const API_SERVER_FLAGS = [
  '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
  ...['--max-requests-inflight', '2000', '--max-mutating-requests-inflight', '1000'],
];

type Draft = { -readonly [Key in keyof VmHistory]: VmHistory[Key] } & { rejected: string[] };

/** Plays a stream on a real control plane with one contender. */
export async function play({ contender, fleet, stream, progress, ...options }: PlayOptions): Promise<History> {
  const stops: (() => unknown)[] = [];
  let over = false;
  const onFault = (error: unknown) => {
    // Calls in flight fail when their API server stops, and the stream deletes VMs that others are about to read.
    if (!over && !(error instanceof ApiError && error.http === 404)) options.onFault(error);
  };
  const plane = await startControlPlane({ apiServerArgs: API_SERVER_FLAGS });
  stops.push(() => plane.stop());
  try {
    await plane.create(...FOREIGN_DEFINITIONS);
    const reports = connect(plane.adminKubeconfig, 'outcome-reports');
    stops.push(() => reports.close());
    const prepared = prepare(contender, { plane, fleet, reports, onFault });
    await prepared.define();
    await plane.create(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: VM_NAMESPACE } },
      ...PHYSNETS.map((physnet) => localnet(physnet, physnet, VM_NAMESPACE)),
    );
    const kube = connect(plane.adminKubeconfig, 'outcome-parts');
    stops.push(() => kube.close());
    const client = createRemoteClient({ client: kube, types: READ, log: silent });
    await client.start();
    stops.push(() => client.close());
    const record = createRecord(fleet);
    const kubelets = createKubelets({
      client,
      fleet,
      agents: contender === 'plumbline',
      onAdmission: record.admission,
      onChange: prepared.publisher.changed,
      onFault,
    });
    await kubelets.start();
    stops.push(() => kubelets.stop());
    await prepared.publisher.start(kubelets.nodes);
    stops.push(() => prepared.publisher.stop());
    const placement = await prepared.start();
    stops.push(() => placement.stop());
    const controller = new VirtController({ client, onFault });
    controller.start();
    stops.push(() => controller.stop());
    // Time for schedulers to read the nodes and for the extender to label them.
    await delay(WARM_UP * 1000);

    const parts = { 'kube-apiserver': plane.apiServer.pid, ...placement.parts };
    const before = processorOf(parts);
    const begun = performance.now();
    const now = () => (performance.now() - begun) / 1000;
    record.begin(now);
    const { annotations } = placement;
    const apply = async (event: Stream['events'][number]): Promise<void> => {
      if ('create' in event) {
        record.created(event.create);
        await client.create(VIRTUAL_MACHINES, machineOf(event.create, annotations));
        return;
      }
      record.deleted(event.delete);
      await client.delete(VIRTUAL_MACHINES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: event.delete, namespace: VM_NAMESPACE },
      });
    };
    const calls: Promise<unknown>[] = [];
    for (const event of stream.events) {
      await delay(Math.max(0, (event.at - now()) * 1000));
      assertRunning(parts);
      calls.push(apply(event).catch(onFault));
      progress(`${Math.round(now())} of ${Math.round(stream.end)} s, ${record.running()} VMs run`);
    }
    await Promise.all(calls);
    // On a busy machine starts may be late: the result is read when no VM starts any more.
    while (now() < stream.end || (now() < stream.end + PATIENCE && now() < record.lastStart() + QUIET)) {
      await delay(1000);
      progress(`${Math.round(now())} of ${Math.round(stream.end)} s, ${record.running()} VMs run`);
    }
    const after = processorOf(parts);
    return {
      vms: record.vms(),
      allocatable: allocatable(fleet),
      threads: fleet.threads,
      processor: Object.fromEntries(Object.keys(parts).map((part) => [part, after[part]! - before[part]!])),
    };
  } finally {
    over = true;
    for (const stop of stops.toReversed()) await Promise.resolve(stop()).catch(onFault);
  }
}

const WARM_UP = 3;
/** Seconds without a start that count as the end, and the longest wait for that. */
const [QUIET, PATIENCE] = [5, 30] as const;
/** Real kubelets and agents have separate connections; here they share this number. */
const CONNECTIONS = 100;

const connect = (kubeconfig: string, name: string) => createKubeClient(kubeconfigAccess(kubeconfig), name, CONNECTIONS);

/** Records the history of the VMs during the run. */
function createRecord(fleet: Fleet) {
  const vms = new Map<string, Draft>();
  const cells = createHost(hostOf(fleet)).cells;
  const cellCpus = (physnet: string) => cells[cellOf(physnet, fleet)]?.cpus ?? CpuSet.EMPTY;
  let now = () => 0;
  let last = 0;
  return {
    /** Time of the last start of a launcher. */
    lastStart: () => last,
    begin(clock: () => number) {
      now = clock;
    },
    created(vm: StreamVm) {
      const { name, phase, network } = vm;
      const physnet = network === undefined ? {} : { physnet: network };
      vms.set(name, { name, phase, need: needOf(vm), created: now(), rejected: [], ...physnet });
    },
    deleted(name: string) {
      const vm = vms.get(name);
      if (vm !== undefined) vm.deleted = now();
    },
    admission(outcome: Admitted) {
      const vm = vms.get(outcome.pod.metadata.labels?.['vm.kubevirt.io/name'] ?? '');
      if (vm === undefined) return;
      if ('reason' in outcome) {
        vm.rejected.push(outcome.reason);
        return;
      }
      vm.ran ??= now();
      last = now();
      vm.cpus = outcome.cpus.size;
      if (vm.physnet !== undefined) vm.near = outcome.cpus.minus(cellCpus(vm.physnet)).isEmpty;
    },
    running: () => [...vms.values()].filter(({ ran, deleted }) => ran !== undefined && deleted === undefined).length,
    vms: (): VmHistory[] => [...vms.values()],
  };
}

/** Ticks per second of the kernel's processor time of a process. */
const TICKS = 100;

/** @throws Error if a process has ended; on an overloaded machine, a kube-scheduler loses its lease and ends */
function assertRunning(parts: Readonly<Record<string, number>>): void {
  const ended = Object.entries(parts).find(([, pid]) => !existsSync(`/proc/${pid}`));
  if (ended !== undefined) throw new Error(`${ended[0]} ended before the stream did; is the machine overloaded?`);
}

/** Processor seconds of each process since its start. */
function processorOf(parts: Readonly<Record<string, number>>): Record<string, number> {
  assertRunning(parts);
  return Object.fromEntries(
    Object.entries(parts).map(([part, pid]) => {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return [part, (Number(fields[11]) + Number(fields[12])) / TICKS];
    }),
  );
}
