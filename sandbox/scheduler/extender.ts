import type { Json, Node, Pod } from '../objects.ts';
import { asksForAny } from '../pod-requests.ts';
import type { ExtenderConfiguration } from './configuration.ts';
import { ExtenderError, type FilterReply, readFilterReply, readPrioritizeReply } from './extender-wire.ts';

export interface Extender {
  readonly name: string;
  readonly ignorable: boolean;
  readonly filters: boolean;
  /** Whether the pod requests one of the managed resources. Without managed resources it is interested in every pod. */
  isInterested(pod: Pod): boolean;
  /** The nodes that pass, and why others do not. @throws ExtenderError */
  filter(pod: Pod, nodes: readonly Node[]): Promise<FilterReply>;
  /** Scores, multiplied by weight x 10 and not clamped. Empty without a prioritizeVerb. @throws ExtenderError */
  prioritize(pod: Pod, nodes: readonly Node[]): Promise<ReadonlyMap<string, number>>;
}

/** kube-scheduler's MaxNodeScore / MaxExtenderPriority. */
const SCORE_SCALE = 10;

/** Creates a client of one extender with a cache of nodes, equivalent to kube-scheduler's HTTPExtender without TLS. */
export function createExtender(config: ExtenderConfiguration): Extender {
  const name = config.urlPrefix;
  const managed = new Set(config.managedResources.map((resource) => resource.name));
  const offer = (pod: Pod, nodes: readonly Node[]): Json => ({
    Pod: pod,
    Nodes: null,
    NodeNames: nodes.map(({ metadata }) => metadata.name),
  });
  return {
    name,
    ignorable: config.ignorable,
    filters: Boolean(config.filterVerb),
    isInterested: (pod) => managed.size === 0 || asksForAny(pod, managed),
    async filter(pod, nodes) {
      const reply = await post(config, config.filterVerb ?? '', offer(pod, nodes));
      return readFilterReply(name, reply, new Set(nodes.map(({ metadata }) => metadata.name)));
    },
    async prioritize(pod, nodes) {
      if (!config.prioritizeVerb) return new Map();
      const scores = readPrioritizeReply(name, await post(config, config.prioritizeVerb, offer(pod, nodes)));
      return new Map([...scores].map(([host, score]) => [host, score * (config.weight ?? 1) * SCORE_SCALE]));
    },
  };
}

async function post({ urlPrefix, httpTimeout }: ExtenderConfiguration, verb: string, body: Json): Promise<unknown> {
  const url = `${urlPrefix.replace(/\/+$/, '')}/${verb}`;
  const fail = (message: string, cause?: unknown) => new ExtenderError(urlPrefix, message, { cause });
  let text: string;
  try {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(httpTimeout);
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal });
    if (response.status !== 200) throw fail(`failed ${verb} with extender at URL ${url}, code ${response.status}`);
    text = await response.text();
  } catch (error) {
    if (error instanceof ExtenderError) throw error;
    const { name, message, cause } = error as Error;
    if (name === 'TimeoutError') throw fail(`${verb}: no answer within ${httpTimeout} ms`, error);
    throw fail(`${verb}: ${cause instanceof Error ? cause.message : message}`, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw fail(`${verb}: the reply is no JSON`, error);
  }
}
