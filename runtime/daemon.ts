import { ConfigError, HelpPrinted } from './config.ts';
import { boundedLine, describeError, type Logger } from './log.ts';
import { printable } from './printable.ts';

export interface Daemon {
  /** Starts everything and resolves when the daemon runs. */
  start(): Promise<void>;
  /** Unready, drain, close. runDaemon calls it once and enforces the deadline. */
  stop(): Promise<void>;
}

export interface RunOptions {
  readonly log: Logger;
  /**
   * Seconds that `stop` may take before the process exits with status 1. Default 25: less than a pod's 30 s of grace.
   */
  readonly deadline?: number;
}

/**
 * Runs a daemon until SIGTERM or SIGINT: starts it, then stops it in order. A second signal or the deadline ends the
 * process at once with status 1; a clean stop ends it with 0.
 */
export async function runDaemon(daemon: Daemon, { log, deadline = 25 }: RunOptions): Promise<void> {
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    let signals = 0;
    const onSignal = (signal: NodeJS.Signals) => {
      if (++signals > 1) process.exit(1);
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
  try {
    await daemon.start();
  } catch (err) {
    log.fatal({ err }, 'startup failed');
    process.exit(1);
  }
  const signal = await asked;
  log.info({ signal }, 'stopping');
  setTimeout(() => {
    log.error({ deadline }, 'shutdown deadline exceeded; exiting');
    process.exit(1);
  }, deadline * 1000).unref();
  try {
    await daemon.stop();
    log.info('stopped');
    process.exit(0);
  } catch (err) {
    log.error({ err }, 'shutdown failed');
    process.exit(1);
  }
}

/** Runs `main` and turns an exception into one line on standard error and the exit status: 2 for bad settings. */
export async function runMain(name: string, main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (error instanceof HelpPrinted) process.exit(0);
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${printable(`${name}: ${message}`)}\n`);
    if (!(error instanceof ConfigError)) process.stderr.write(boundedLine(`${JSON.stringify(describeError(error))}\n`));
    process.exit(error instanceof ConfigError ? 2 : 1);
  }
}
