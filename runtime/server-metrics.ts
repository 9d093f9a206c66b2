import { registerCertificateMetrics } from './certificate-expiry.ts';
import type { HttpServer } from './http-server.ts';
import { Gauge, type Registry } from './metrics.ts';
import type { RequestBodies } from './request-bodies.ts';

/** Says how close a server is to its limits. @param prefix `plumbline_webhook` */
export function registerServerMetrics(
  registry: Registry,
  prefix: string,
  { bodies, server }: { readonly bodies: RequestBodies; readonly server: Pick<HttpServer, 'connections' | 'expiries'> },
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
  gauge('request_bytes', 'Bytes of requests that are coming in or being worked on', () => bodies.bytes);
  gauge('requests_given_up', 'Requests that were given up as their bytes were needed for others', () => bodies.evicted);
  gauge('connections', 'Open connections', () => server.connections.open);
  gauge(
    'connections_closed_early',
    'Connections that were closed to make room for others, and new ones that found none',
    () => server.connections.evicted,
  );
}
