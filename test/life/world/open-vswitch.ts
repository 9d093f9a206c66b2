import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAffinity } from '../../../native/affinity.ts';
import { threadsOfProcess } from '../../../native/peer.ts';
import { endChild, endsWithUs } from '../../support/children.ts';
import { until } from '../../support/until.ts';

const SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema';
const affinity = createAffinity();
const run = promisify(execFile);
export const MACHINE = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim());

type Daemon = 'ovsdb-server' | 'ovs-vswitchd';

export class OpenVswitch {
  readonly rundir: string;
  readonly enabler: string;
  isOn = false;
  since = 0;
  isDatabaseUp = false;
  databaseSince = 0;
  /** When a daemon last started; infinite while one starts, because the agent cannot find it yet. */
  startedAt = 0;
  /** Masks of threads from before the first agent; a thread that is not listed has those of its daemon's start. */
  readonly #originals = new Map<number, string>();
  readonly #daemons = new Map<Daemon, ChildProcess>();
  readonly #environment: NodeJS.ProcessEnv;
  readonly #socket: string;
  /** Ports of the bridge as the node has them, and as the database does. */
  #ports: readonly string[] = [];
  #applied: readonly string[] = [];

  constructor(directory: string) {
    const rundir = join(directory, 'var/run/openvswitch');
    this.rundir = rundir;
    this.#socket = join(rundir, 'db.sock');
    const directories = { OVS_RUNDIR: rundir, OVS_DBDIR: rundir, OVS_LOGDIR: rundir, OVS_SYSCONFDIR: rundir };
    this.#environment = { ...process.env, ...directories };
    const etc = join(directory, 'etc/openvswitch');
    for (const path of [rundir, etc]) mkdirSync(path, { recursive: true });
    this.enabler = join(etc, 'enable_dynamic_cpu_affinity');
    execFileSync('ovsdb-tool', ['create', join(rundir, 'conf.db'), SCHEMA]);
  }

  async create(ports: readonly string[]): Promise<void> {
    await this.startDatabase();
    await this.#configure('init');
    await this.#configure('add-br', 'br-ex', '--', 'set', 'bridge', 'br-ex', 'datapath_type=dummy');
    await this.#configure('set', 'Open_vSwitch', '.', 'external_ids:ovn-bridge-mappings=physnet1:br-ex');
    await this.setPorts(ports);
    await this.start();
    const own = [...MACHINE].map((cpu) => CpuSet.of([cpu]));
    const threads = () => threadsOfProcess(this.#daemons.get('ovs-vswitchd')?.pid ?? 0);
    // A thread inherits the mask of the one that starts it: the thread of RCU is started by any, so it must be there.
    const has = (name: RegExp) => threads().some((tid) => name.test(this.#nameOf(tid)));
    await until('all kinds of threads', () => [/^urcu/, /^handler/, /^revalidator/].every(has));
    for (const [index, tid] of threads().slice(-own.length).entries()) {
      const cpus = own[index] ?? MACHINE;
      affinity.set(tid, cpus.toWords());
      this.#originals.set(tid, cpus.toString());
    }
  }

  #nameOf(tid: number): string {
    const path = `/proc/${this.#daemons.get('ovs-vswitchd')?.pid}/task/${tid}/comm`;
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  async start(): Promise<void> {
    await this.#start('ovs-vswitchd', `unix:${this.#socket}`, '--enable-dummy=override', '--disable-system');
  }

  async stop(): Promise<void> {
    await this.#stop('ovs-vswitchd');
  }

  async startDatabase(): Promise<void> {
    if (this.isDatabaseUp) return;
    await this.#start('ovsdb-server', join(this.rundir, 'conf.db'), `--remote=punix:${this.#socket}`);
    // Its socket exists before it listens there.
    await until('ovsdb-server answers', () => this.#configure('show').then(() => true));
    this.#setDatabase(true);
    await this.setPorts(this.#ports);
  }

  async stopDatabase(): Promise<void> {
    if (!this.isDatabaseUp) return;
    this.#setDatabase(false);
    await this.#stop('ovsdb-server');
  }

  async setPorts(ports: readonly string[]): Promise<void> {
    this.#ports = ports;
    if (!this.isDatabaseUp) return;
    const gone = this.#applied.filter((name) => !ports.includes(name)).map((name) => ['del-port', 'br-ex', name]);
    const added = ports.filter((name) => !this.#applied.includes(name)).map((name) => ['add-port', 'br-ex', name]);
    const changes = [...gone, ...added];
    this.#applied = ports;
    if (changes.length > 0) await this.#configure(...changes.flatMap((change) => ['--', ...change]));
  }

  masks(): Map<number, CpuSet> {
    const masks = new Map<number, CpuSet>();
    for (const tid of [...this.#daemons.values()].flatMap(({ pid = 0 }) => threadsOfProcess(pid))) {
      try {
        masks.set(tid, CpuSet.fromWords(affinity.get(tid)));
      } catch {
        // It has ended.
      }
    }
    return masks;
  }

  notRestored(): string[] {
    return [...this.masks()].flatMap(([tid, mask]) => {
      const original = this.#originals.get(tid) ?? MACHINE.toString();
      return mask.toString() === original ? [] : [`thread ${tid} has ${mask}, not ${original}`];
    });
  }

  setOn(isOn: boolean): void {
    if (isOn) writeFileSync(this.enabler, '1');
    else rmSync(this.enabler, { force: true });
    if (isOn !== this.isOn) this.since = performance.now();
    this.isOn = isOn;
  }

  #setDatabase(isUp: boolean): void {
    this.isDatabaseUp = isUp;
    this.databaseSince = performance.now();
  }

  async #configure(...args: string[]): Promise<void> {
    await run('ovs-vsctl', [`--db=unix:${this.#socket}`, '--no-wait', ...args], { env: this.#environment });
  }

  async #start(name: Daemon, ...args: string[]): Promise<void> {
    const quiet = ['--pidfile', '-vconsole:off', '-vsyslog:off'];
    const child = spawn(name, [...args, ...quiet], { env: this.#environment, stdio: 'ignore' });
    endsWithUs(child);
    this.startedAt = Number.POSITIVE_INFINITY;
    this.#daemons.set(name, child);
    const pidfile = join(this.rundir, `${name}.pid`);
    await until(pidfile, () => existsSync(pidfile) && readFileSync(pidfile, 'utf8') === `${child.pid}\n`);
    this.startedAt = performance.now();
  }

  async #stop(name: Daemon): Promise<void> {
    const child = this.#daemons.get(name);
    this.#daemons.delete(name);
    if (child !== undefined) await endChild(child);
  }
}
