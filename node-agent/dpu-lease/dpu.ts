import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isNotFound, KubeError } from '../../kube/client.ts';
import { errorText } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { type DpuRun, type DpuRunRecord, nextRecord, parseDpuRun, restartOf } from '../../model/lease/dpu-run.ts';
import type { LeaseTiming } from '../../model/lease/timing.ts';
import { DPU_RUN_ANNOTATION } from '../../model/names.ts';
import { Durations } from '../../runtime/problem-log.ts';
import { sleep } from '../../runtime/time.ts';
import { readBounded } from '../files/bounded-file.ts';
import { type LeaseName, type LeaseObject, leaseText, patchLease, Renewals, readLease } from '../kube-objects/lease.ts';
import type { Services } from '../lifecycle/duty.ts';
import { askOnce } from '../open-vswitch/answers.ts';
import { DaemonFinder, type OvsDaemonName, readPid } from '../open-vswitch/daemons.ts';
import { OVSDB_SOCKET } from '../open-vswitch/ovsdb/follow.ts';
import { bootId } from '../processes/proc.ts';

export interface DpuDeps extends Pick<Services, 'client' | 'log' | 'metrics'> {
  readonly lease: LeaseName;
  readonly timing: LeaseTiming;
  readonly probe: Probe;
  /** What runs on the DPU now; undefined if that is unknown. */
  readonly readRun: () => RunReading | undefined;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
}

/**
 * Renews while the probe finds the DPU healthy, and records restarts of the DPU and of its Open vSwitch. It never creates the
 * Lease, which would outlive its node. The Lease is the only memory of earlier runs: each answer of the API server has it.
 */
export class DpuLease {
  readonly #deps: DpuDeps;
  readonly #renewals: Renewals;
  readonly #outages = new Durations();
  /** As the API server last answered; undefined before this process has read it. */
  #lease: LeaseObject | undefined;
  /** Whether it was logged that the API server refuses the record, as with policies of an earlier release. */
  #isRecordRefused = false;
  /** Why the last round did not renew; undefined if it did. */
  #problem: string | undefined = 'never renewed';

  constructor(deps: DpuDeps) {
    this.#deps = deps;
    this.#renewals = new Renewals(deps.wallClock);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const problem = await this.#round(signal);
      if (!signal.aborted) this.#announce(problem);
      await sleep(this.#deps.timing.renewInterval, signal).catch(() => undefined);
    }
  }

  #announce(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    const { lease, timing, log } = this.#deps;
    const fields = { lease: leaseText(lease), intervalSeconds: timing.renewInterval };
    if (problem === undefined) log.info({ ...fields, ...this.#outages.end('') }, 'renewing the DPU lease');
    else {
      this.#outages.begin('');
      log.warn({ ...fields, reason: problem }, 'renewing the DPU lease failed');
    }
  }

  /** @returns why it did not renew */
  async #round(signal: AbortSignal): Promise<string | undefined> {
    const { metrics, probe } = this.#deps;
    const unwell = await probe(signal);
    if (unwell !== undefined) {
      metrics.dpuRenewals.inc({ outcome: 'withheld' });
      return `not renewed because the DPU is not healthy: ${unwell}`;
    }
    try {
      await this.#renew(signal);
      metrics.dpuRenewals.inc({ outcome: 'renewed' });
      return undefined;
    } catch (error) {
      metrics.dpuRenewals.inc({ outcome: 'failed' });
      if (isNotFound(error)) return 'the lease does not exist yet; the agent on the host creates it (--mode dpu-host)';
      return (error as Error).message;
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { client, lease, log } = this.#deps;
    if (this.#lease === undefined) {
      this.#lease = await readLease(client, lease, signal);
      this.#renewals.continueAfter(this.#lease.spec?.renewTime);
    }
    const spec = { renewTime: this.#renewals.next() };
    const record = this.#changedRecord();
    if (record === undefined) {
      this.#lease = await patchLease(client, lease, { spec }, signal);
      return;
    }
    const annotations = { [DPU_RUN_ANNOTATION]: JSON.stringify(record) };
    try {
      this.#lease = await patchLease(client, lease, { metadata: { annotations }, spec }, signal);
      const restart = restartOf(record);
      if (restart !== undefined) log.warn(restart, 'the DPU has restarted');
    } catch (error) {
      if (!(error instanceof KubeError) || ![403, 422].includes(error.status)) throw error;
      // Without the record, the Lease is renewed anyway: the DPU is alive.
      this.#lease = await patchLease(client, lease, { spec }, signal);
      if (!this.#isRecordRefused) log.warn({ reason: error.message }, 'DPU restarts not recorded');
      this.#isRecordRefused = true;
    }
  }

  /** Undefined if the Lease has what runs now, or that is unknown. */
  #changedRecord(): DpuRunRecord | undefined {
    const { readRun, wallClock } = this.#deps;
    const reading = readRun();
    if (reading === undefined) return undefined;
    // A network's time is without its fraction of a second: one made just before the restart must be older.
    const seconds = Math.ceil(wallClock() / 1000 - reading.ageSeconds);
    const at = new Date(seconds * 1000).toISOString();
    const recorded = parseDpuRun(this.#lease?.metadata.annotations?.[DPU_RUN_ANNOTATION]);
    return nextRecord(recorded, reading.run, `${at.slice(0, 19)}Z`);
  }
}

/** Checks whether the DPU is healthy. Resolves to undefined, or to the reason why it is not. */
export type Probe = (signal: AbortSignal) => Promise<string | undefined>;

/** Deadline in seconds for a daemon's answer; its main loop runs many times a second. */
const ANSWER_DEADLINE_SECONDS = 2;

/** Both daemons of Open vSwitch must answer on their sockets: a process that hangs renews nothing. */
export function ovsProbe(rundir: string, answerWithin = ANSWER_DEADLINE_SECONDS): Probe {
  return async (signal) => {
    const ask = (name: OvsDaemonName, socket: string): Promise<string[]> =>
      askOnce(name, join(rundir, socket), answerWithin, signal).then(
        () => [],
        (error: unknown) => [`${name} does not answer: ${errorText(error)}`],
      );
    try {
      // A DPU's agent has a PID namespace of its own.
      const missing = new DaemonFinder(rundir).find().missing.filter(({ code }) => code !== 'hidden');
      if (missing.length > 0) return missing.map(({ message }) => message).join('; ');
      const pid = readPid(join(rundir, 'ovs-vswitchd.pid'));
      const control = ask('ovs-vswitchd', `ovs-vswitchd.${pid}.ctl`);
      const problems = await Promise.all([ask('ovsdb-server', OVSDB_SOCKET), control]);
      return problems.flat().join('; ') || undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

export interface RunReading {
  readonly run: DpuRun;
  /** Seconds since Open vSwitch started. */
  readonly ageSeconds: number;
}

/** Of /proc on every architecture (USER_HZ). */
const TICKS_PER_SECOND = 100;
const MAX_UPTIME_BYTES = 128;

/** Undefined while Open vSwitch's pidfile or the boot id cannot be read. */
export function readDpuRun(rundir: string): RunReading | undefined {
  const pidfile = join(rundir, 'ovs-vswitchd.pid');
  return resultOrNone(() => {
    const uptime = Number.parseFloat(readBounded('/proc/uptime', MAX_UPTIME_BYTES));
    const id = bootId();
    if (id === '' || Number.isNaN(uptime)) return undefined;
    const { processes } = new DaemonFinder(rundir).find();
    const daemon = processes.find(({ name, role }) => name === 'ovs-vswitchd' && role === 'daemon');
    const written = Math.floor(statSync(pidfile).mtimeMs);
    const run: DpuRun = { bootId: id, pid: daemon?.pid ?? readPid(pidfile), pidfile: written };
    if (daemon !== undefined) {
      return { run: { ...run, start: daemon.start }, ageSeconds: uptime - daemon.start / TICKS_PER_SECOND };
    }
    // The agent is in another PID namespace. A clock that was set since then gives no age.
    const age = (Date.now() - written) / 1000;
    return { run, ageSeconds: age >= 0 && age <= uptime ? age : 0 };
  });
}
