import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { groupBy } from '../../../model/lists.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { FakeKubelet } from '../../node-agent/kubelet-stand-in.ts';
import { endsWithUs } from '../../support/children.ts';
import { replaceFile, writeTree } from '../../support/files.ts';
import { coreOf, type Machine, type MachineFacts, PAGE_BYTES } from './machine.ts';

/** The folder of the socket that answers, behind the process of a run. */
const BEHIND = 'behind';
const OWNER = join(import.meta.dirname, 'socket-owner.cjs');

export interface Owner {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  readonly cpus: CpuSet;
  /** Monotonic milliseconds. */
  readonly since: number;
}

export interface Claim {
  readonly cpus: CpuSet;
  readonly since: number;
}

export interface Settings {
  readonly reserved: string;
  readonly options: Readonly<Record<string, string>>;
  /** Bytes of huge pages reserved on NUMA node 0. */
  readonly reservedPages: number;
}

export interface KubeletRun {
  readonly machine: MachineFacts;
  readonly settings: Settings;
  readonly version: string;
}

export type CheckpointFault = 'torn' | 'empty' | 'huge' | 'fifo' | 'directory' | 'loop';
export type Answers = 'ready' | 'silent' | 'failing' | 'slow';

const SLOW_MILLISECONDS = 1500;
const HUGE_BYTES = 3 * 1024 * 1024;
/** Milliseconds in which a kubelet that has started lists no pods yet. */
const LISTS_NOTHING_MILLISECONDS = 700;

const authority = createCertificateAuthority('kubelet-ca');
const serving = authority.issue(['127.0.0.1']);
const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/**
 * A kubelet as the agent sees it, and the truth about its pods. It reads sysfs and its configuration only at its start,
 * keeps its state in memory and writes it with a rename, and leaves its sockets behind when it is killed.
 */
export class LifeKubelet {
  readonly directory: string;
  readonly cdiDir: string;
  run: KubeletRun;
  owners: readonly Owner[] = [];
  readonly claims = new Map<string, Claim>();
  checkpointFault: CheckpointFault | undefined;
  /** When the file became usable or unusable, the sockets answered or not: monotonic milliseconds. */
  checkpointSince = 0;
  answersSince = 0;
  /** When it last wrote who has CPUs. */
  changedAt = 0;
  answers: Answers = 'ready';
  /** For the next start. */
  version = 'v1.36.0';
  settings: Settings = { reserved: '0,8', options: { 'full-pcpus-only': 'true' }, reservedPages: 0 };
  /** Undefined while it does not run; it is ready when the Node says so. */
  state: 'stopped' | 'starting' | 'ready' = 'stopped';
  stateSince = 0;
  onReady: () => void = () => {};
  readonly #fake: FakeKubelet;
  #process: ChildProcess | undefined;
  readonly #machine: Machine;
  #configz: Server | undefined;
  #port = 0;
  #next = 1;

  constructor(hostRoot: string, machine: Machine) {
    const directory = join(hostRoot, 'var/lib/kubelet');
    this.directory = directory;
    this.#machine = machine;
    this.#fake = new FakeKubelet(directory, { podResources: BEHIND, cdiDir: join(hostRoot, 'var/run/cdi') });
    this.cdiDir = this.#fake.cdiDir;
    this.#fake.beforeAnswer = () => this.#beforeAnswer();
    this.run = { machine: machine.facts, settings: this.settings, version: this.version };
    writeTree(directory, { 'pki/kubelet.crt': `${serving.cert}${authority.cert}` });
  }

  get endpoint(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get owned(): CpuSet {
    return unionOf([...this.owners, ...this.claims.values()].map(({ cpus }) => cpus));
  }

  async #beforeAnswer(): Promise<void> {
    if (this.answers === 'silent') await new Promise(() => {});
    if (this.answers === 'failing') throw new Error('the kubelet fails for the test');
    if (this.answers === 'slow') await pause(SLOW_MILLISECONDS);
  }

  setAnswers(answers: Answers): void {
    this.answers = answers;
    this.answersSince = performance.now();
  }

  #setState(state: LifeKubelet['state']): void {
    this.state = state;
    this.stateSince = performance.now();
  }

  /** It serves its configuration from the beginning, then its state, its plugins' socket and PodResources. */
  async start(): Promise<void> {
    if (this.state !== 'stopped') return;
    this.#setState('starting');
    const before = this.run;
    // It would refuse to start with more reserved pages than the NUMA node has.
    if (this.settings.reservedPages > (this.#machine.facts.pages[0] ?? 0) * PAGE_BYTES)
      this.settings = { ...this.settings, reservedPages: 0 };
    this.run = { machine: this.#machine.facts, settings: this.settings, version: this.version };
    // Kubernetes' documentation: drain the node and delete the state before CPUs or reserved CPUs change.
    const reserved = CpuSet.parse(this.settings.reserved);
    const isDrained = !before.machine.online.equals(this.run.machine.online) || this.owned.intersects(reserved);
    if (isDrained) {
      this.owners = [];
      for (const uid of [...this.claims.keys()]) this.removeClaim(uid);
    }
    await this.#serveConfigz();
    this.#fake.allocatable = this.run.machine.online.minus(reserved).toString();
    this.writeState();
    const plugins = join(this.directory, 'device-plugins');
    for (const name of readdirSync(plugins)) rmSync(join(plugins, name), { recursive: true, force: true });
    this.#fake.registrations.length = 0;
    this.#fake.pods = {};
    await this.#fake.start();
    if ((this.state as string) !== 'stopped') await this.#startProcess();
    await pause(LISTS_NOTHING_MILLISECONDS);
    if ((this.state as string) === 'stopped') return;
    this.#list();
    this.#setState('ready');
    this.onReady();
  }

  async #startProcess(): Promise<void> {
    const [socket, behind] = ['pod-resources', BEHIND].map((name) => join(this.directory, name, 'kubelet.sock'));
    const child = spawn(process.execPath, [OWNER, String(socket), String(behind)], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    endsWithUs(child);
    this.#process = child;
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  }

  /** As by SIGKILL: its files and sockets stay. */
  async stop(): Promise<void> {
    if (this.state === 'stopped') return;
    this.#setState('stopped');
    this.#fake.kill();
    this.#process?.kill('SIGKILL');
    this.#process = undefined;
    this.#configz?.closeAllConnections();
    await new Promise((resolve) => (this.#configz ? this.#configz.close(resolve) : resolve(undefined)));
    this.#configz = undefined;
  }

  async #serveConfigz(): Promise<void> {
    const { settings } = this.run;
    const limits = { 'hugepages-2Mi': String(settings.reservedPages) };
    const kubeletconfig = {
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: settings.options,
      topologyManagerPolicy: 'single-numa-node',
      memoryManagerPolicy: 'Static',
      reservedSystemCPUs: settings.reserved,
      ...(settings.reservedPages > 0 && { reservedMemory: [{ numaNode: 0, limits }] }),
    };
    const body = JSON.stringify({ kubeletconfig });
    const server = createServer({ cert: serving.cert, key: serving.key }, (_request, response) => {
      response.writeHead(200).end(body);
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#configz = server;
  }

  freeCores(): CpuSet[] {
    const { machine, settings } = this.run;
    const free = machine.online.minus(CpuSet.parse(settings.reserved)).minus(this.owned);
    const cores = new Map([...free].map((cpu) => [coreOf(cpu).toString(), coreOf(cpu)]));
    return [...cores.values()].filter((core) => core.isSubsetOf(free));
  }

  newUid(): string {
    return `00000000-0000-4000-8000-${String(this.#next++).padStart(12, '0')}`;
  }

  /** Admits a container; several of a call are written at once. */
  add(...added: readonly Omit<Owner, 'since'>[]): void {
    const since = performance.now();
    this.#setOwners([...this.owners, ...added.map((owner) => ({ ...owner, since }))]);
  }

  remove(...removed: readonly Owner[]): void {
    this.#setOwners(this.owners.filter((owner) => !removed.includes(owner)));
  }

  #setOwners(owners: readonly Owner[]): void {
    this.owners = owners;
    this.writeState();
    this.#list();
  }

  addClaim(uid: string, cpus: CpuSet): void {
    this.claims.set(uid, { cpus, since: performance.now() });
    this.#fake.writeClaim(uid, cpus.toString());
  }

  removeClaim(uid: string): void {
    this.claims.delete(uid);
    this.#fake.writeClaim(uid, undefined);
  }

  #list(): void {
    this.#fake.pods = this.#byPod(({ namespace, pod }) => `${namespace}/${pod}`);
  }

  /** CPUs by pod and container; Object.fromEntries makes a key of `__proto__`, as JSON.parse does. */
  #byPod(keyOf: (owner: Owner) => string): Record<string, Record<string, string>> {
    const containers = (owners: readonly Owner[]) =>
      Object.fromEntries(owners.map(({ container, cpus }) => [container, cpus.toString()]));
    return Object.fromEntries([...groupBy(this.owners, keyOf)].map(([key, owners]) => [key, containers(owners)]));
  }

  /** Writes both states with a rename, which repairs a broken file. It fails where a directory is in its place. */
  writeState(): void {
    const { machine, settings } = this.run;
    const entries = this.#byPod(({ uid }) => uid);
    const pool = machine.online.minus(unionOf(this.owners.map(({ cpus }) => cpus)));
    try {
      this.#fake.writeCheckpoint(pool.toString(), entries);
      this.changedAt = performance.now();
      if (this.checkpointFault !== undefined) this.checkpointSince = performance.now();
      this.checkpointFault = undefined;
    } catch {
      // The kubelet logs it, and continues with the state in memory.
    }
    const machineState = machine.pages.map((count, id) => {
      const reserved = id === 0 ? settings.reservedPages : 0;
      const table = (total: number, systemReserved: number) => {
        const allocatable = total - systemReserved;
        return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
      };
      const memoryMap = { memory: table(2 ** 36, 0), 'hugepages-2Mi': table(count * PAGE_BYTES, reserved) };
      return [String(id), { numberOfAssignments: 0, memoryMap, cells: [id] }];
    });
    const state = { policyName: 'Static', machineState: Object.fromEntries(machineState), checksum: 1 };
    replaceFile(join(this.directory, 'memory_manager_state'), JSON.stringify(state));
  }

  breakCheckpoint(fault: CheckpointFault): void {
    const file = join(this.directory, 'cpu_manager_state');
    const put = (make: (path: string) => void) => {
      rmSync(`${file}.test`, { recursive: true, force: true });
      make(`${file}.test`);
      if (fault === 'directory') rmSync(file, { force: true });
      renameSync(`${file}.test`, file);
    };
    const makers: Record<CheckpointFault, (path: string) => void> = {
      torn: (path) => writeFileSync(path, '{"policyName":"static","defaultCpuSet":"0-'),
      empty: (path) => writeFileSync(path, ''),
      huge: (path) => writeFileSync(path, ' '.repeat(HUGE_BYTES)),
      fifo: (path) => execFileSync('mkfifo', [path]),
      directory: (path) => mkdirSync(path),
      loop: (path) => symlinkSync('cpu_manager_state', path),
    };
    put(makers[fault]);
    this.checkpointFault = fault;
    this.checkpointSince = performance.now();
  }

  /** What an administrator or the kubelet's next write does. */
  restoreCheckpoint(): void {
    if (this.checkpointFault === 'directory') rmSync(join(this.directory, 'cpu_manager_state'), { recursive: true });
    this.writeState();
  }
}
