import type { Daemon } from './daemon.ts';
import type { HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';
import { createProbeServer, type Readiness } from './probes.ts';
import { sleep } from './time.ts';

export interface ServingDaemonOptions {
  readonly server: HttpServer;
  /** Where /healthz, /readyz and /metrics are served, in plain HTTP. */
  readonly probes: { readonly host: string; readonly port: number };
  readonly notReady: Readiness;
  readonly registry: Registry;
  /** What goes on beside serving, until the signal is aborted: watches, timers. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Ends what is left once nothing is served any more. */
  readonly close: () => Promise<void>;
  readonly log: Logger;
}

/** Seconds between turning unready and refusing connections: endpoints take that long to forget a pod. */
const DRAIN_NOTICE = 2;

/**
 * The life of a daemon that answers requests: probes first, then the server, then what runs beside it; and at the end
 * unready, a moment for callers to notice, drain, close.
 */
export function createServingDaemon(options: ServingDaemonOptions): Daemon {
  const { server, probes, notReady, registry, run, close, log } = options;
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
      await sleep(DRAIN_NOTICE);
      await server.stop();
      running.abort();
      await close();
      await probeServer.stop(0);
    },
  };
}
