import { AGENT, NAMESPACE, SCHEDULER, WEBHOOK } from '../../model/names.ts';
import type { PodProcesses } from '../../sandbox/cluster/emulated-node.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import type { DaemonProcess } from './daemons.ts';

/** What a port of a container is in the log of its daemon, as in the manifests. */
const PORTS: Readonly<Record<string, Readonly<Record<number, 'port' | 'probePort'>>>> = {
  [WEBHOOK]: { 8443: 'port', 8081: 'probePort' },
  [SCHEDULER]: { 8082: 'port', 8081: 'probePort' },
  [AGENT]: { 8082: 'probePort' },
  [`${AGENT}-dpu-host`]: { 8082: 'probePort' },
};

/** The daemons as the containers of the pods in plumbline-system. A daemon that has ended is not started again. */
export class DaemonPods implements PodProcesses {
  readonly #daemons = new Map<string, DaemonProcess>();

  /** @param node for an agent */
  add(daemon: DaemonProcess, name: string, node?: string): void {
    this.#daemons.set(keyOf(name, node), daemon);
  }

  isReady(pod: KubePod): boolean {
    return pod.metadata.namespace !== NAMESPACE || this.#daemonOf(pod)?.isAlive() === true;
  }

  localPort(pod: KubePod, port: number): number | undefined {
    const daemon = this.#daemonOf(pod);
    const name = PORTS[nameOf(pod)]?.[port];
    return name && daemon?.isAlive() ? daemon.servedPorts()?.[name] : undefined;
  }

  #daemonOf(pod: KubePod): DaemonProcess | undefined {
    return this.#daemons.get(keyOf(nameOf(pod))) ?? this.#daemons.get(keyOf(nameOf(pod), pod.spec.nodeName));
  }
}

const nameOf = ({ metadata }: KubePod) => metadata.labels?.['app.kubernetes.io/name'] ?? '';
const keyOf = (name: string, node = '') => `${name} ${node}`;
