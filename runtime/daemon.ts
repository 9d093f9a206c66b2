import { setFlagsFromString } from 'node:v8';
import { ConfigError, HelpPrinted } from './config.ts';
import type { HttpServer } from './http-server.ts';
import { createLogger, type Logger } from './log.ts';
import type { Registry } from './metrics.ts';
import { printable } from './printable.ts';
import { createProbeServer, type Readiness } from './probes.ts';
import { monotonicSeconds, sleep } from './time.ts';

export interface Daemon {
  start(): Promise<void>;
  /** Unready, drain, close. runDaemon calls it once and enforces the deadline. */
  stop(): Promise<void>;
  /** Resolves with the error if its work fails: runDaemon then stops it, and the pod restarts. */
  readonly failure?: Promise<unknown>;
}

interface RunOptions {
  readonly log: Logger;
  /** Seconds until `stop` is cut off with status 1. Default 25: less than a pod's 30 s of grace. */
  readonly deadline?: number;
}

/** Runs a daemon until SIGTERM or SIGINT. A second signal, the deadline or a failure ends it with status 1. */
export async function runDaemon(daemon: Daemon, { log, deadline = 25 }: RunOptions): Promise<void> {
  const stopSignal = new Promise<{ readonly signal: NodeJS.Signals }>((resolve) => {
    let signals = 0;
    const onSignal = (signal: NodeJS.Signals) => {
      if (++signals > 1) process.exit(1);
      resolve({ signal });
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
  const failure = daemon.failure?.then((err) => ({ err }));
  const cause = await Promise.race([stopSignal, ...(failure === undefined ? [] : [failure])]);
  if ('err' in cause) log.fatal({ err: cause.err }, 'the daemon’s work failed; stopping');
  else log.info(cause, 'stopping');
  const limit = setTimeout(() => {
    log.error({ deadlineSeconds: deadline }, 'shutdown deadline exceeded; exiting');
    process.exit(1);
  }, deadline * 1000).unref();
  try {
    await daemon.stop();
    log.info('stopped');
    process.exit('err' in cause ? 1 : 0);
  } catch (err) {
    log.error({ err }, 'shutdown failed');
    process.exit(1);
  } finally {
    clearTimeout(limit);
  }
}

/** Turns an exception of `main` into a line for people, a log line and the exit status: 2 for bad settings. */
export async function runMain(name: string, component: string, main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (error instanceof HelpPrinted) process.exit(0);
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${printable(`${name}: ${message}`)}\n`);
    createLogger(component).fatal({ err: error }, 'startup failed');
    process.exit(error instanceof ConfigError ? 2 : 1);
  }
}

interface ServingDaemonOptions {
  readonly server: HttpServer;
  readonly probes: { readonly host: string; readonly port: number };
  readonly notReady: Readiness;
  readonly registry: Registry;
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly close: () => Promise<void>;
  /** Default: 2 s without an arrival, 8 s at most. */
  readonly drain?: DrainTimes;
  readonly log: Logger;
}

/**
 * Seconds between turning unready and refusing connections. Callers stop using a pod once EndpointSlices and kube-proxy
 * are updated, which takes longer on a busy cluster. While requests arrive, the daemon answers them, up to `most`.
 */
interface DrainTimes {
  readonly quiet: number;
  readonly most: number;
}
const DRAIN: DrainTimes = { quiet: 2, most: 8 };
const CHECK_SECONDS = 0.05;

/** Stops in this order: unready, answer until callers have noticed, drain, close. */
export function createServingDaemon(options: ServingDaemonOptions): Daemon {
  const { server, probes, notReady, registry, run, close, log, drain = DRAIN } = options;
  const running = new AbortController();
  let stopping = false;
  let fail: (error: unknown) => void = () => undefined;
  const failure = new Promise<unknown>((resolve) => {
    fail = resolve;
  });
  const readiness: Readiness = () => (stopping ? 'stopping' : notReady());
  const probeServer = createProbeServer({ ...probes, notReady: readiness, registry, log });
  return {
    failure,
    async start() {
      await probeServer.start();
      await server.start();
      run(running.signal).catch(fail);
      log.info({ port: server.port, probePort: probeServer.port }, 'serving');
    },
    async stop() {
      stopping = true;
      // An open connection still reaches this process after the endpoints are updated.
      server.drain();
      await untilForgotten(server, drain);
      await server.stop();
      running.abort();
      await close();
      await probeServer.stop(0);
    },
  };
}

async function untilForgotten(server: HttpServer, { quiet, most }: DrainTimes): Promise<void> {
  const begun = monotonicSeconds();
  for (;;) {
    const now = monotonicSeconds();
    if (now - Math.max(begun, server.lastArrival ?? begun) >= quiet || now - begun >= most) return;
    await sleep(CHECK_SECONDS);
  }
}

/** Sets V8's garbage collector for a daemon that keeps little of what it reads. Node.js refuses these in NODE_OPTIONS. */
export function tuneGarbageCollection(): void {
  // V8 would mark the old generation each time the heap has grown by a third of its limit: for the extender with 5,000
  // nodes, whose live heap is about 25 of 192 MiB, once in thirty calls and for more time than such a call takes.
  setFlagsFromString('--heap-growing-percent=200');
  // V8 would put objects that survive their first collection into the old generation from the start. Each of those
  // then keeps its request and body, 70 kB for 500 names, until the old generation is marked.
  setFlagsFromString('--no-allocation-site-pretenuring');
}
