import { connect } from 'node:net';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { errorText, PlumblineError } from '../../model/errors.ts';
import type { KernelIo } from './knobs.ts';
import type { MoverDeps } from './mover.ts';

export interface IrqbalanceDeps extends Pick<MoverDeps, 'originals' | 'nowSeconds'> {
  readonly files: KernelIo;
  /** Directory of its socket: /run/irqbalance of the host. */
  readonly irqbalanceRundir: string;
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
    const { files, irqbalanceRundir, originals, nowSeconds } = this.#deps;
    try {
      const socket = files.list(irqbalanceRundir).find((name) => /^irqbalance\d+\.sock$/.test(name));
      const isDue = socket !== this.#socket || !owned.equals(this.#owned) || nowSeconds() >= this.#checkAt;
      this.#socket = socket;
      this.#owned = owned;
      if (socket !== undefined && isDue) await this.#exchange(socket, owned);
      if (socket === undefined && owned.isEmpty) originals.change({ irqbalance: undefined });
      this.#problem = undefined;
    } catch (error) {
      this.#problem = `irqbalance does not answer in ${irqbalanceRundir}: ${errorText(error)}`;
      this.#checkAt = nowSeconds() + CHECK_SECONDS;
    } finally {
      this.#isBusy = false;
    }
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
      originals.change({ irqbalance: undefined });
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
  async #ask(socket: string, command: string): Promise<string> {
    const stream = connect(join(this.#deps.irqbalanceRundir, socket)).setEncoding('utf8');
    stream.setTimeout(DEADLINE_MILLISECONDS, () => stream.destroy(new Error('no answer in time')));
    stream.write(command);
    let answer = '';
    for await (const chunk of stream) {
      answer += String(chunk);
      if (answer.length > MAX_CHARACTERS) throw new PlumblineError('irqbalance', 'its answer is too long');
    }
    return answer;
  }
}
