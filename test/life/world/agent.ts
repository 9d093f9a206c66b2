import { join } from 'node:path';
import { dist } from '../../support/bundles.ts';
import { endChild } from '../../support/children.ts';
import { type DaemonProcess, startDaemonProcess } from '../../support/daemon-process.ts';

const CLOCK = join(import.meta.dirname, '../../faults/world/jumping-clock.cjs');

export class LifeAgent {
  /** When it began to work, or took over from another agent: monotonic milliseconds. */
  since = Number.POSITIVE_INFINITY;
  readonly #process: DaemonProcess;
  #isExpectedToEnd = false;
  ended: string | undefined;

  constructor(flags: readonly string[], clockFile: string) {
    const program = ['--require', CLOCK, join(dist, 'node-agent.cjs'), '--probe-port', '0'];
    this.#process = startDaemonProcess([...program, ...flags], { ...process.env, PLUMBLINE_TEST_CLOCK: clockFile });
    this.#process.process.once('exit', (code, signal) => {
      if (!this.#isExpectedToEnd) this.ended = `status ${code ?? signal}: ${this.lastWords()}`;
    });
  }

  lastWords(): string {
    const { lines, text } = this.#process;
    const logged = lines.slice(-20).map((line) => JSON.stringify(line));
    return [...text.slice(-12), ...logged].join('\n    ').slice(-8000);
  }

  get pid(): number {
    return this.#process.process.pid ?? 0;
  }

  linesWith(...texts: readonly string[]): string[] {
    return this.#process.lines
      .map((line) => JSON.stringify(line))
      .filter((line) => texts.every((text) => line.includes(text)));
  }

  get isWorking(): boolean {
    const isStarted = this.#process.line('agent started') !== undefined;
    if (isStarted && this.since === Number.POSITIVE_INFINITY) this.since = performance.now();
    return isStarted;
  }

  async readiness(): Promise<string | undefined> {
    const signal = AbortSignal.timeout(5000);
    const port = this.#process.line('agent started')?.['probePort'];
    if (port === undefined) return undefined;
    try {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal, headers: { connection: 'close' } });
      return (await response.text()).trim();
    } catch {
      return undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#isExpectedToEnd = true;
    await endChild(this.#process.process, signal, 20);
  }
}
