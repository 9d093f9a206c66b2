import { connect } from 'node:net';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { errorText, PlumblineError } from '../../model/errors.ts';
import type { KernelIo } from './knobs.ts';
import type { Originals } from './originals.ts';

export interface IrqbalanceDeps {
  readonly files: Pick<KernelIo, 'list'>;
  /** Directory of irqbalance's socket: /run/irqbalance of the host. */
  readonly rundir: string;
  readonly originals: Originals;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

const DEADLINE_MILLISECONDS = 2000;
/** Its answer names each interrupt. */
const MAX_CHARACTERS = 1024 * 1024;
/** Seconds between checks whether it still leaves out the CPUs. */
const CHECK_SECONDS = 60;
const DEFAULT_PERIOD_SECONDS = 10;

/**
 * Tells irqbalance which CPUs to leave out. Its setting replaces its own (IRQBALANCE_BANNED_CPUS, isolcpus, nohz_full),
 * so the agent sends the union with what irqbalance had before. It takes effect within two of its periods, and is lost
 * when irqbalance restarts. Source: irqbalance.c and ui/ of irqbalance 1.9.
 *
 * Owner: the duty. Age: as of the last exchange. End: `reconcile` without owned CPUs.
 */
export class Irqbalance {
  readonly #deps: IrqbalanceDeps;
  #socket: string | undefined;
  #owned = CpuSet.EMPTY;
  #settlesAt = 0;
  #checkAt = 0;
  #problem: string | undefined;
  #isBusy = false;

  constructor(deps: IrqbalanceDeps) {
    this.#deps = deps;
  }

  /** Whether it may still move interrupts to CPUs that it should leave out. */
  get isSettling(): boolean {
    return this.#deps.nowSeconds() < this.#settlesAt;
  }

  /** Whether it listens. */
  get isPresent(): boolean {
    return this.#socket !== undefined;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  /** Never rejects: the caller does not wait for it. */
  async reconcile(owned: CpuSet): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { rundir, nowSeconds } = this.#deps;
    try {
      await this.#reconcile(owned);
      this.#problem = undefined;
    } catch (error) {
      this.#problem = `irqbalance does not answer in ${rundir}: ${errorText(error)}`;
      this.#checkAt = nowSeconds() + CHECK_SECONDS;
    } finally {
      this.#isBusy = false;
    }
  }

  async #reconcile(owned: CpuSet): Promise<void> {
    const { files, rundir, originals, nowSeconds } = this.#deps;
    const socket = files.list(rundir).find((name) => /^irqbalance\d+\.sock$/.test(name));
    const isSame = socket === this.#socket && owned.equals(this.#owned);
    this.#socket = socket;
    this.#owned = owned;
    if (socket === undefined) {
      if (owned.isEmpty && originals.value?.irqbalance !== undefined) originals.change({ irqbalance: undefined });
      return;
    }
    if (!isSame || nowSeconds() >= this.#checkAt) await this.#exchange(socket, owned);
  }

  async #exchange(socket: string, owned: CpuSet): Promise<void> {
    const { originals, nowSeconds } = this.#deps;
    const setup = await this.#ask(socket, 'setup');
    const period = Number(/\bSLEEP (\d+)/.exec(setup)?.[1] ?? DEFAULT_PERIOD_SECONDS);
    const mask = /\bBANNED ([\da-f,]+)/i.exec(setup)?.[1];
    if (mask === undefined) throw new PlumblineError('irqbalance', 'its answer names no banned CPUs');
    const banned = CpuSet.fromMask(mask);
    const saved = originals.value?.irqbalance;
    this.#checkAt = nowSeconds() + CHECK_SECONDS;
    // After a restart it has its own setting again, unless it took the agent's from its environment.
    const isOurs = saved !== undefined && (banned.equals(saved.sent) || (saved.socket === socket && this.isSettling));
    if (owned.isEmpty) {
      if (isOurs) await this.#ask(socket, 'settings cpus NULL');
      if (saved !== undefined) originals.change({ irqbalance: undefined });
      return;
    }
    const before = saved !== undefined && (saved.socket === socket || isOurs) ? saved.before : banned;
    const sent = before.union(owned);
    if (banned.equals(sent) && saved?.sent.equals(sent) === true) return;
    originals.change({ irqbalance: { socket, before, sent } });
    await this.#ask(socket, `settings cpus ${sent}`);
    this.#settlesAt = nowSeconds() + 2 * period + 1;
    this.#checkAt = Math.min(this.#checkAt, this.#settlesAt);
  }

  /** One command for each connection; irqbalance closes it after its answer. */
  #ask(socket: string, command: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const stream = connect(join(this.#deps.rundir, socket));
      let answer = '';
      stream.setTimeout(DEADLINE_MILLISECONDS, () => stream.destroy(new Error('no answer in time')));
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        answer += chunk;
        if (answer.length > MAX_CHARACTERS) stream.destroy(new Error('its answer is too long'));
      });
      stream.once('error', reject).once('close', () => resolve(answer));
      stream.once('connect', () => stream.write(command));
    });
  }
}
