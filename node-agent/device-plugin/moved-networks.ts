import type { KubeClient } from '../../kube/client.ts';
import type { EventTarget } from '../../kube/events.ts';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { recognizeLauncher, vmiNameOf, vmiObject } from '../../model/launcher/recognize.ts';
import { PLACEMENT_ANNOTATION, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { ListedContainer } from '../assignments/listed-containers.ts';
import { ChangeSignal, repeat, type Services } from '../lifecycle/duty.ts';
import type { Networks } from '../networks/networks.ts';
import { checkAllocation, containerNames, deviceNetworkText, readPodOfHolder } from './allocation-checker.ts';

/** Deadline in seconds for the kubelet to list the owners of devices, and for the API server to return a pod. */
const READ_TIMEOUT_SECONDS = 2;

export interface MovedNetworksDeps extends Pick<Services, 'events' | 'log'> {
  readonly networks: Pick<Networks, 'view' | 'isComplete' | 'subscribe'>;
  readonly host: () => Promise<Host>;
  /** Lists the pods' devices; closed when the duty ends. */
  readonly podResources: () => Pick<PodResourcesClient, 'list' | 'close'>;
  readonly client: Pick<KubeClient, 'get'>;
}

/** A network that moved. Without NUMA nodes it has left the node. */
interface Move {
  readonly resource: string;
  readonly from: CpuSet;
  readonly to: CpuSet | undefined;
}

/** Reports that a network has left, or has moved away from a running pod's CPUs, which cannot follow. */
export class MovedNetworks {
  readonly #deps: MovedNetworksDeps;

  constructor(deps: MovedNetworksDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { networks, log } = this.#deps;
    const changes = new ChangeSignal();
    const end = networks.subscribe(changes.set);
    const podResources = this.#deps.podResources();
    let before: NodeNetworks | undefined;
    const round = async (): Promise<undefined> => {
      const now = networks.isComplete ? networks.view().networks : undefined;
      const moves = before && now ? movesOf(before, now) : [];
      if (moves.length > 0) await this.#announceAll(moves, podResources, signal);
      before = now ?? before;
    };
    const warning = 'finding the pods of a moved network failed; retrying';
    await repeat(signal, round, { problems: new ProblemLog(log), warning, changes });
    end();
    podResources.close();
  }

  async #announceAll(
    moves: readonly Move[],
    podResources: Pick<PodResourcesClient, 'list'>,
    signal: AbortSignal,
  ): Promise<void> {
    const host = await this.#deps.host();
    const pods = await podResources.list({ signal, deadlineSeconds: READ_TIMEOUT_SECONDS });
    for (const { namespace, name: podName, containers } of pods) {
      for (const { name: container, devices, cpuIds } of containers) {
        // A container in the shared pool runs on all NUMA nodes.
        if (cpuIds.length === 0) continue;
        const affected = moves.filter(({ resource }) => devices.some(({ resourceName }) => resourceName === resource));
        const holder = { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
        for (const move of affected) await this.#announce(move, holder, host, signal);
      }
    }
  }

  async #announce(move: Move, holder: ListedContainer, host: Host, signal: AbortSignal): Promise<void> {
    const { client, events, log } = this.#deps;
    const { namespace, podName: name, container, cpus } = holder;
    const { resource, to: cells } = move;
    const isNear = (spansCells: boolean) =>
      cells !== undefined &&
      checkAllocation({ host, resource, cells, cpus, wholeCores: false, spansCells }) === undefined;
    if (isNear(false)) return;
    const limits = { signal, timeout: READ_TIMEOUT_SECONDS };
    const pod = await readPodOfHolder(client, holder, limits).catch((err: unknown) => {
      log.warn({ err, ...containerNames(holder) }, 'reading a pod whose network moved failed');
      return undefined;
    });
    if (isNear(parsePreferences(pod?.metadata.annotations?.[PLACEMENT_ANNOTATION]).spansCells)) return;
    const message = `container ${container}, which runs on CPUs ${cpus.brief}: ${moveText(move)}; restart or migrate it to place it again`;
    const targets: EventTarget[] = [{ apiVersion: 'v1', kind: 'Pod', namespace, name, uid: pod?.metadata.uid }];
    const launcher = pod && recognizeLauncher(pod);
    if (launcher?.kind === 'launcher') targets.push(vmiObject(namespace, launcher.vmi));
    const event = 'NetworkMoved';
    for (const target of targets) events.record(target, { type: 'Warning', reason: event, message });
    const network = deviceNetworkText(resource);
    const fields = { ...containerNames(holder), vmi: pod && vmiNameOf(pod), cpus, network, event, message };
    log.warn(fields, 'network moved under a running pod');
  }
}

function movesOf(before: NodeNetworks, now: NodeNetworks): Move[] {
  const moves = [...before.physnets].map(([name, from]): Move => {
    return { resource: physnetResource(name), from, to: now.physnets.get(name) };
  });
  if (before.tunnel !== undefined) moves.push({ resource: TUNNEL_RESOURCE, from: before.tunnel, to: now.tunnel });
  return moves.filter(({ from, to }) => to === undefined || !from.equals(to));
}

function moveText({ resource, from, to }: Move): string {
  const was = from.isEmpty ? 'no NUMA node in particular' : `NUMA node ${from}`;
  if (to === undefined) return `${deviceNetworkText(resource)}, which was on ${was}, has left this node`;
  return `${deviceNetworkText(resource)} moved from ${was} to NUMA node ${to}, away from those CPUs`;
}
