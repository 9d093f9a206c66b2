import type { Daemon } from './daemon.ts';
import type { HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';
import { createProbeServer, type Readiness } from './probes.ts';
import { monotonicSeconds, sleep } from './time.ts';

export interface ServingDaemonOptions {
  readonly server: HttpServer;
  /** The address of /healthz, /readyz and /metrics, over plain HTTP. */
  readonly probes: { readonly host: string; readonly port: number };
  readonly notReady: Readiness;
  readonly registry: Registry;
  /** Work that runs while the daemon serves, until the signal is aborted: watches, timers. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Ends the rest after the server has stopped. */
  readonly close: () => Promise<void>;
  /** Default: 2 s without an arrival, 8 s at most. */
  readonly drain?: DrainTimes;
  readonly log: Logger;
}

/**
 * Seconds between turning unready and refusing connections. Callers stop using a pod once EndpointSlices and kube-proxy
 * are updated, which takes longer on a busy cluster. While requests arrive, the daemon answers them, up to `most`.
 */
export interface DrainTimes {
  readonly quiet: number;
  readonly most: number;
}
const DRAIN: DrainTimes = { quiet: 2, most: 8 };
/** Seconds between two checks for arrivals. */
const LOOK = 0.05;

/**
 * Creates a daemon that answers requests. It starts the probes, then the server, then the work that runs with it. It
 * stops in this order: unready, answer until callers have noticed, drain, close.
 */
export function createServingDaemon(options: ServingDaemonOptions): Daemon {
  const { server, probes, notReady, registry, run, close, log, drain = DRAIN } = options;
  const running = new AbortController();
  let stopping = false;
  const probeServer = createProbeServer({
    ...probes,
    notReady: () => (stopping ? 'stopping' : notReady()),
    registry,
    log,
  });
  return {
    async start() {
      await probeServer.start();
      await server.start();
      void run(running.signal);
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

/** Resolves after a quiet time without arrivals. */
async function untilForgotten(server: HttpServer, { quiet, most }: DrainTimes): Promise<void> {
  const begun = monotonicSeconds();
  for (;;) {
    const now = monotonicSeconds();
    if (now - Math.max(begun, server.lastArrival ?? begun) >= quiet || now - begun >= most) return;
    await sleep(LOOK);
  }
}
