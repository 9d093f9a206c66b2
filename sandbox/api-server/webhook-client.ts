import { Agent, request } from 'node:https';
import { isIP } from 'node:net';
import type { Json } from '../objects.ts';
import type { Webhook } from './webhook-configuration.ts';

/** The address of a Service in the sandbox, which has no kube-proxy. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Finds the endpoint of a Service's port, or undefined if it has none. */
export type ServiceResolver = (namespace: string, name: string, port: number) => Endpoint | undefined;

export interface WebhookClient {
  /**
   * Posts a review to a webhook and returns the decoded response.
   * @throws Error if verified TLS to the webhook fails, if it exceeds its timeoutSeconds, or if the response is not 2xx
   * or not JSON
   */
  call(webhook: Webhook, review: Json): Promise<Json>;
  close(): void;
}

const MOST_BYTES = 8 * 1024 * 1024;

/** Creates a client that calls admission webhooks over HTTPS and only trusts each webhook's own caBundle. */
export function createWebhookClient(resolve: ServiceResolver): WebhookClient {
  const agent = new Agent({ keepAlive: true });
  return {
    async call(webhook, review) {
      const { host, port, servername, path } = locate(webhook, resolve);
      const body = Buffer.from(JSON.stringify(review));
      const { caBundle } = webhook.clientConfig;
      return new Promise<Json>((resolvePromise, reject) => {
        const outgoing = request(
          {
            agent,
            host,
            port,
            // TLS verifies an IP address as an address; SNI only supports names.
            ...(isIP(servername) === 0 && { servername }),
            path: `${path}${path.includes('?') ? '&' : '?'}timeout=${webhook.timeoutSeconds}s`,
            method: 'POST',
            headers: {
              host: port === 443 ? servername : `${servername}:${port}`,
              'content-type': 'application/json',
              accept: 'application/json, */*',
              'content-length': body.length,
            },
            // Without a bundle the real server uses the system's CAs; neither of them skips verification.
            ...(caBundle !== undefined && { ca: Buffer.from(caBundle, 'base64') }),
            signal: AbortSignal.timeout(webhook.timeoutSeconds * 1000),
          },
          (response) => {
            const chunks: Buffer[] = [];
            let size = 0;
            response.on('data', (chunk: Buffer) => {
              size += chunk.length;
              if (size > MOST_BYTES) response.destroy(new Error(`the answer is longer than ${MOST_BYTES} bytes`));
              else chunks.push(chunk);
            });
            response.on('error', reject);
            response.on('end', () => {
              const status = response.statusCode ?? 0;
              const text = Buffer.concat(chunks).toString('utf8');
              if (status < 200 || status > 299) {
                reject(
                  new Error(
                    `an error on the server (${JSON.stringify(text.slice(0, 200))}) has prevented the request from succeeding (HTTP ${status})`,
                  ),
                );
                return;
              }
              try {
                resolvePromise(JSON.parse(text) as Json);
              } catch (error) {
                reject(new Error(`the answer is no JSON: ${JSON.stringify(text.slice(0, 200))}`, { cause: error }));
              }
            });
          },
        );
        outgoing.on('error', (error) =>
          reject(error.name === 'AbortError' ? new Error('context deadline exceeded', { cause: error }) : error),
        );
        outgoing.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

function locate({ clientConfig: { url, service } }: Webhook, resolve: ServiceResolver) {
  if (url !== undefined) {
    const { hostname, port, pathname, search } = new URL(url);
    const servername = hostname.replace(/^\[|\]$/g, '');
    return { host: servername, servername, port: Number(port || 443), path: pathname + search };
  }
  const { namespace, name, path = '/', port } = service!;
  const endpoint = resolve(namespace, name, port);
  if (!endpoint) throw new Error(`no endpoints available for service "${namespace}/${name}"`);
  return { ...endpoint, servername: `${name}.${namespace}.svc`, path };
}
