import type { Daemon } from './daemon.ts';
import type { HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';
import { createProbeServer, type Readiness } from './probes.ts';
import { monotonicSeconds, sleep } from './time.ts';

export interface ServingDaemonOptions {
  readonly server: HttpServer;
  /** Where /healthz, /readyz and /metrics are served, in plain HTTP. */
  readonly probes: { readonly host: string; readonly port: number };
  readonly notReady: Readiness;
  readonly registry: Registry;
  /** What runs while the daemon serves, until the signal is aborted: watches, timers. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Ends what is left once nothing is served any more. */
  readonly close: () => Promise<void>;
  /** Default: 2 s without an arrival, 8 s at most. */
  readonly drain?: DrainTimes;
  readonly log: Logger;
}

/**
 * Seconds between turning unready and refusing connections. Callers forget a pod once EndpointSlices and kube-proxy have, which
 * takes a moment, and longer on a busy cluster: as long as something arrives it is answered, up to `most`.
 */
export interface DrainTimes {
  readonly quiet: number;
  readonly most: number;
}
const DRAIN: DrainTimes = { quiet: 2, most: 8 };
/** Seconds between two looks at whether something arrived. */
const LOOK = 0.05;

/**
 * The life of a daemon that answers requests: probes first, then the server, then what runs with it; and at the end
 * unready, answering until callers have noticed, drain, close.
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
      // A kept connection goes on to reach this process after endpoints have forgotten it.
      server.drain();
      await untilForgotten(server, drain);
      await server.stop();
      running.abort();
      await close();
      await probeServer.stop(0);
    },
  };
}

/** Resolves once nothing has arrived for a while. */
async function untilForgotten(server: HttpServer, { quiet, most }: DrainTimes): Promise<void> {
  const begun = monotonicSeconds();
  for (;;) {
    const now = monotonicSeconds();
    if (now - Math.max(begun, server.lastArrival ?? begun) >= quiet || now - begun >= most) return;
    await sleep(LOOK);
  }
}
