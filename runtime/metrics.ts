import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Expiries } from './certificate.ts';
import type { HttpServer } from './http-server.ts';
import { unreadableObjects } from './unreadable-objects.ts';

export { Gauge, Registry } from 'prom-client';

/** Objects of the API server that count as absent because they exceed a limit or do not have the expected fields. */
export const unreadableGauge = new Gauge({
  name: 'plumbline_unreadable_objects',
  help: 'Objects of the API server that this process ignores: a field is too long or unexpected, or its namespace uses up the memory of the cache; the log names each',
  labelNames: ['kind'],
  registers: [],
  collect() {
    for (const [kind, count] of unreadableObjects) this.set({ kind }, count);
  },
});

/** With the process's metrics. @param lagPrecision milliseconds between measurements of the event loop; default 10 */
export function createRegistry(lagPrecision?: number): Registry {
  const registry = new Registry();
  const precision = lagPrecision === undefined ? {} : { eventLoopMonitoringPrecision: lagPrecision };
  collectDefaultMetrics({ register: registry, ...precision });
  registry.registerMetric(unreadableGauge);
  return registry;
}

/** Functions that create metrics in a registry. @param prefix of each name: `plumbline_webhook` */
export function metricsOf(registry: Registry, prefix: string) {
  const common = (name: string, help: string) => ({ name: `${prefix}_${name}`, help, registers: [registry] });
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
      new Counter({ ...common(name, help), labelNames }),
    gauge: <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
      new Gauge({ ...common(name, help), labelNames }),
    histogram: <Label extends string>(name: string, help: string, buckets: number[], labelNames: Label[] = []) =>
      new Histogram({ ...common(name, help), buckets, labelNames }),
  };
}

interface ServerLoad {
  readonly bodies: { readonly bytes: number; readonly evicted: number };
  readonly server: Pick<HttpServer, 'connections' | 'expiries'>;
}

/** Registers gauges that show how close a server is to its limits. @param prefix `plumbline_webhook` */
export function registerServerMetrics(registry: Registry, prefix: string, { bodies, server }: ServerLoad): void {
  registerCertificateMetrics(registry, server);
  const closedEarly = 'Connections closed to make room for others, and new connections refused at the limit';
  for (const [name, help, read] of [
    ['request_bytes', 'Bytes of requests that are arriving or in use', () => bodies.bytes],
    ['requests_given_up', 'Requests dropped to free memory for other requests', () => bodies.evicted],
    ['connections', 'Open connections', () => server.connections.open],
    ['connections_closed_early', closedEarly, () => server.connections.evicted],
  ] as const) {
    new Gauge({
      name: `${prefix}_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  }
}

/** Registers the gauge of certificates' expiry; a certificate that the server does not have is absent from it. */
function registerCertificateMetrics(registry: Registry, server: { readonly expiries: Expiries }): void {
  new Gauge({
    name: 'plumbline_certificate_expiry_timestamp_seconds',
    help: 'When a certificate expires (serving, its authority, the client that called last), in seconds since 1970',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [certificate, end] of server.expiries) this.set({ certificate }, end);
    },
  });
}
