import { Agent, request } from 'node:http';
import type { Json, Node, Pod } from '../objects.ts';
import { asksForAny } from '../pod-requests.ts';
import type { ExtenderConfiguration } from './configuration.ts';
import {
  ExtenderError,
  type FilterReply,
  readBindReply,
  readFilterReply,
  readPrioritizeReply,
} from './extender-wire.ts';

export interface Extender {
  readonly name: string;
  readonly ignorable: boolean;
  readonly filters: boolean;
  readonly binds: boolean;
  /** Whether the pod requests one of the managed resources. Without managed resources it is interested in every pod. */
  isInterested(pod: Pod): boolean;
  /** The nodes that pass, and why others do not. @throws ExtenderError */
  filter(pod: Pod, nodes: readonly Node[]): Promise<FilterReply>;
  /** Scores, multiplied by weight x 10 and not clamped. Empty without a prioritizeVerb. @throws ExtenderError */
  prioritize(pod: Pod, nodes: readonly Node[]): Promise<ReadonlyMap<string, number>>;
  /** @throws ExtenderError */
  bind(pod: Pod, nodeName: string): Promise<void>;
  close(): void;
}

/** kube-scheduler's MaxNodeScore / MaxExtenderPriority. */
const SCORE_SCALE = 10;
const IDLE_SOCKET_MS = 90_000;

/** Creates a client of one extender, equivalent to kube-scheduler's HTTPExtender without TLS. */
export function createExtender(config: ExtenderConfiguration): Extender {
  const name = config.urlPrefix;
  const managed = new Set(config.managedResources.map((resource) => resource.name));
  const post = createPoster(config);
  const offer = (pod: Pod, nodes: readonly Node[]): Json => ({
    Pod: pod,
    Nodes: config.nodeCacheCapable ? null : { metadata: {}, items: [...nodes] },
    NodeNames: config.nodeCacheCapable ? nodes.map(({ metadata }) => metadata.name) : null,
  });
  return {
    name,
    ignorable: config.ignorable,
    filters: Boolean(config.filterVerb),
    binds: Boolean(config.bindVerb),
    isInterested: (pod) => managed.size === 0 || asksForAny(pod, managed),
    async filter(pod, nodes) {
      const reply = await post.send(config.filterVerb ?? '', offer(pod, nodes));
      const offered = new Set(nodes.map(({ metadata }) => metadata.name));
      return readFilterReply(name, reply, offered, config.nodeCacheCapable);
    },
    async prioritize(pod, nodes) {
      if (!config.prioritizeVerb) return new Map();
      const scores = readPrioritizeReply(name, await post.send(config.prioritizeVerb, offer(pod, nodes)));
      return new Map([...scores].map(([host, score]) => [host, score * (config.weight ?? 1) * SCORE_SCALE]));
    },
    async bind(pod, nodeName) {
      const { name: podName, namespace = '', uid = '' } = pod.metadata;
      const args = { PodName: podName, PodNamespace: namespace, PodUID: uid, Node: nodeName };
      readBindReply(name, await post.send(config.bindVerb ?? '', args));
    },
    close: post.close,
  };
}

function createPoster(config: ExtenderConfiguration) {
  const agent = new Agent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  const send = (verb: string, body: Json) =>
    new Promise<unknown>((resolve, reject) => {
      const bytes = Buffer.from(JSON.stringify(body));
      const url = new URL(`${config.urlPrefix.replace(/\/+$/, '')}/${verb}`);
      const fail = (message: string, cause?: unknown) =>
        reject(new ExtenderError(config.urlPrefix, message, cause === undefined ? undefined : { cause }));
      const outgoing = request(
        url,
        {
          agent,
          method: 'POST',
          headers: { host: url.host, 'content-type': 'application/json', 'content-length': bytes.length },
          signal: AbortSignal.timeout(config.httpTimeout),
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', (error) => fail(error.message, error));
          response.on('end', () => {
            if (response.statusCode !== 200) {
              fail(`failed ${verb} with extender at URL ${url.href}, code ${response.statusCode}`);
              return;
            }
            try {
              resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
            } catch (error) {
              fail(`${verb}: the reply is no JSON`, error);
            }
          });
        },
      );
      outgoing.on('error', (error) =>
        fail(
          error.name === 'AbortError'
            ? `${verb}: no answer within ${config.httpTimeout} ms`
            : `${verb}: ${error.message}`,
          error,
        ),
      );
      outgoing.end(bytes);
    });
  return { send, close: () => agent.destroy() };
}
