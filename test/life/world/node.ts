import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeApi, type FakeApi } from '../../node-agent/api-stand-in.ts';
import { writeKubeconfig } from '../../node-agent/wiring/agent-stage.ts';
import { replaceFile } from '../../support/files.ts';
import { LifeAgent } from './agent.ts';
import { LifeKubelet } from './kubelet.ts';
import { Machine } from './machine.ts';
import { OpenVswitch } from './open-vswitch.ts';
import { StateDirectory } from './state-directory.ts';

export const NODE = 'node-1';
export const TOPOLOGY = `/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`;
export const LEASE = `/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases/plumbline-agent-${NODE}`;

export type ApiState = 'answers' | 'silent' | 'failing' | 'refusing';

export interface MapNetworks {
  readonly physnet2: number;
  readonly tunnel: number;
}

/** How long an agent may wait for a second heartbeat. */
const OTHER_CLOCK_MILLISECONDS = 60_000;

export class LifeNode {
  readonly directory = mkdtempSync(join(tmpdir(), 'life-'));
  readonly machine: Machine;
  readonly kubelet: LifeKubelet;
  readonly switch: OpenVswitch;
  readonly state: StateDirectory;
  readonly api: FakeApi = createFakeApi(NODE);
  apiState: ApiState = 'answers';
  apiSince = 0;
  /** The last network map without an error, and whether the file has one. */
  map: MapNetworks = { physnet2: 1, tunnel: 0 };
  mapFault: string | undefined;
  mapSince = 0;
  /** When the last valid map was written, or an agent began that had to save it. */
  mapSavedSince = 0;
  agent: LifeAgent | undefined;
  second: LifeAgent | undefined;
  /** Why the original masks may be lost: the agent could not save them before it ended. */
  masksLost: string | undefined;
  /** When the NodeTopology was deleted, in monotonic milliseconds. */
  deletedAt = 0;
  /** While Open vSwitch is stopped and started. */
  isRestarting = false;
  readonly launchers = new Map<string, object>();
  readonly #clock: string;
  /** Milliseconds by which the node's wall clock is off: that of the agent, and that of the kubelet. */
  #clockOffset = 0;
  #apiPort = 0;
  #flags: readonly string[] = [];
  #isNodeStale = false;
  /** When the kubelet last wrote the Node, in seconds since 1970. */
  #heartbeat = 0;
  /** The offset of the clock at that time. */
  #heartbeatOffset = 0;
  #clockMovedAt = Number.NEGATIVE_INFINITY;

  constructor() {
    const path = (name: string) => join(this.directory, name);
    mkdirSync(path('sys'));
    this.machine = new Machine(path('sys'));
    this.kubelet = new LifeKubelet(this.directory, this.machine);
    this.switch = new OpenVswitch(this.directory);
    this.state = new StateDirectory(path('var/lib/plumbline'));
    this.#clock = path('clock');
    writeFileSync(this.#clock, '0');
    const directories = ['sys/fs/cgroup', 'run/plumbline', 'etc/cni/net.d', 'opt/cni/bin', 'map'];
    for (const name of directories) mkdirSync(path(name), { recursive: true });
    this.kubelet.onReady = () => this.#writeNode();
  }

  async start(): Promise<void> {
    const address = await this.api.listen();
    this.#apiPort = Number(new URL(address).port);
    this.writeMap(this.map);
    await this.switch.create([...this.machine.nics.keys()]);
    await this.kubelet.start();
    this.#flags = Object.entries({
      'node-name': NODE,
      kubeconfig: writeKubeconfig(this.directory, address),
      'host-root': this.directory,
      'kubelet-endpoint': this.kubelet.endpoint,
      'network-map': join(this.directory, 'map/map.yaml'),
    }).flatMap(([name, value]) => [`--${name}`, value]);
    this.startAgent();
  }

  startAgent(): void {
    this.agent ??= new LifeAgent(this.#flags, this.#clock);
  }

  startSecond(): void {
    this.second ??= new LifeAgent(this.#flags, this.#clock);
  }

  async endAgent(how: 'stop' | 'kill'): Promise<void> {
    const agent = this.agent;
    this.noteMasks();
    this.agent = undefined;
    await agent?.[how]();
    if (this.second === undefined) return;
    this.agent = this.second;
    this.second = undefined;
    if (this.agent.isWorking) this.agent.since = performance.now();
  }

  /** A DaemonSet starts an agent that has ended again. */
  replaceEndedAgent(): void {
    if (this.second?.ended !== undefined) this.second = undefined;
    if (this.agent?.ended === undefined) return;
    this.noteMasks();
    this.agent = undefined;
    this.startAgent();
  }

  /** Ending an agent that could not save the original masks loses the masks. */
  noteMasks(): void {
    const { isOn, since, startedAt } = this.switch;
    if (isOn && this.state.mayHaveRefused(Math.max(since, startedAt, this.agent?.since ?? 0)))
      this.masksLost = 'an agent ended before it could save them';
  }

  async setApi(state: ApiState): Promise<void> {
    if (this.apiState === 'refusing') await this.api.listen(this.#apiPort);
    this.api.silent = state === 'silent';
    this.api.failing = state === 'failing';
    if (state === 'refusing') await this.api.close();
    this.apiState = state;
    this.apiSince = performance.now();
    if (state === 'answers' && this.#isNodeStale) this.#writeNode();
  }

  /** The kubelet writes the Node's status when it is ready, as soon as the API server answers. */
  #writeNode(): void {
    this.#isNodeStale = this.apiState !== 'answers';
    if (this.#isNodeStale) return;
    const capacity = { pods: '110' };
    const path = `/api/v1/nodes/${NODE}`;
    const nodeInfo = { kubeletVersion: this.kubelet.run.version };
    // To the second, as in the API; a kubelet takes more than one to start.
    this.#heartbeat = Math.max(this.#heartbeat + 1, Math.ceil((Date.now() + this.#clockOffset) / 1000));
    this.#heartbeatOffset = this.#clockOffset;
    const lastHeartbeatTime = `${new Date(this.#heartbeat * 1000).toISOString().slice(0, 19)}Z`;
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime }];
    this.api.objects.set(path, {
      ...this.api.objects.get(path),
      status: { nodeInfo, conditions, capacity, allocatable: capacity },
    });
    this.kubelet.stateSince = performance.now();
  }

  /** Whether an agent may have started that cannot compare it with the kubelet's start (node-reader.ts). */
  get isHeartbeatOfOtherClock(): boolean {
    return (
      this.#heartbeatOffset !== this.#clockOffset || performance.now() < this.#clockMovedAt + OTHER_CLOCK_MILLISECONDS
    );
  }

  get isNodeStale(): boolean {
    return this.#isNodeStale;
  }

  deleteTopology(): void {
    this.api.objects.delete(TOPOLOGY);
    this.deletedAt = performance.now();
  }

  writeMap(map: MapNetworks): void {
    this.map = map;
    this.#writeMapText(`physnets: {physnet2: {numaNodes: [${map.physnet2}]}}\ntunnel: {numaNodes: [${map.tunnel}]}\n`);
    this.mapFault = undefined;
    this.mapSavedSince = this.mapSince;
  }

  breakMap(): void {
    this.#writeMapText('physnets: {physnet2: {numaNodes: [7]}}\n');
    this.mapFault = 'there is no NUMA node 7';
  }

  #writeMapText(text: string): void {
    replaceFile(join(this.directory, 'map/map.yaml'), text);
    this.mapSince = performance.now();
  }

  moveClock(milliseconds: number): void {
    if (milliseconds !== this.#clockOffset) this.#clockMovedAt = performance.now();
    this.#clockOffset = milliseconds;
    replaceFile(this.#clock, String(milliseconds));
  }

  async end(): Promise<void> {
    await Promise.all([this.agent?.kill(), this.second?.kill()]);
    await this.switch.stop();
    await this.switch.stopDatabase();
    await this.kubelet.stop();
    if (this.apiState !== 'refusing') await this.api.close();
    this.state.end();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
