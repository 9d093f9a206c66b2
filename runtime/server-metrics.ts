import { registerCertificateMetrics } from './certificate.ts';
import type { HttpServer } from './http-server.ts';
import { Gauge, type Registry } from './metrics.ts';

/**
 * Registers gauges that show how close a server is to its limits.
 *
 * @param prefix `plumbline_webhook`
 */
export function registerServerMetrics(
  registry: Registry,
  prefix: string,
  {
    bodies,
    server,
  }: {
    readonly bodies: { readonly bytes: number; readonly evicted: number };
    readonly server: Pick<HttpServer, 'connections' | 'expiries'>;
  },
): void {
  registerCertificateMetrics(registry, server);
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `${prefix}_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  gauge('request_bytes', 'Bytes of requests that are arriving or in use', () => bodies.bytes);
  gauge('requests_given_up', 'Requests dropped to free memory for other requests', () => bodies.evicted);
  gauge('connections', 'Open connections', () => server.connections.open);
  gauge(
    'connections_closed_early',
    'Connections closed to make room for others, and new connections refused at the limit',
    () => server.connections.evicted,
  );
}
