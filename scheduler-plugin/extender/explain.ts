import * as z from 'zod';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { type Pod, pod as podSchema } from '../../kube/resources.ts';
import { cut } from '../../model/errors.ts';
import { createSlices } from '../../runtime/time.ts';
import { limitAmounts } from '../cluster/pod-needs.ts';
import type { Decisions } from '../filter/decisions.ts';
import { ArgsError, nodeNames, parseBody } from './args.ts';
import type { Extender } from './extender.ts';

export type Explainer = ReturnType<typeof createExplainer>;

interface ExplainerOptions {
  readonly extender: Extender;
  readonly decisions: Decisions;
  readonly client: Pick<KubeClient, 'get'>;
  readonly isActive: () => boolean;
}

const explainedPod = podSchema.superRefine(limitAmounts);
const posted = z.union([z.object({ Pod: explainedPod, NodeNames: nodeNames.nullish() }), explainedPod]);

/**
 * `GET /explain?pod=namespace/name` reads the pod, `POST /explain` accepts one that need not exist, `GET /explain`
 * lists the last decisions. No reservation. A standby answers, too, from its own observations.
 */
export function createExplainer({ extender, decisions, client, isActive }: ExplainerOptions) {
  const explanation = async (pod: Pod, names?: readonly string[]) => {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const { kind, places = [] } = extender.state.reservations.of(uid) ?? {};
    const cpus = [...places].map(([node, place]) => [node, place?.cpus?.toString() ?? ''] as const);
    const reservation = kind && { kind, nodes: Object.fromEntries(cpus) };
    const active = isActive();
    // In slices: the scheduler's calls run in between.
    const slices = createSlices();
    const nodes: object[] = [];
    for (const explained of extender.explain(pod, names)) nodes.push(await slices.run(() => writtenOut(explained())));
    return { active, pod: { namespace, name, uid }, reservation, nodes };
  };

  return {
    /** Without a name, the last decisions. @throws ArgsError, NotNow, KubeError */
    async ofPod(name: string | null): Promise<object> {
      if (name === null) return { active: isActive(), decisions: decisions.list() };
      const pod = await readExplainedPod(client, name);
      const { namespace, name: podName } = pod.metadata;
      return { ...(await explanation(pod)), decisions: decisions.list(`${namespace}/${podName}`) };
    },
    /** A pod, or a whole filter call; it need not exist. @throws ArgsError, NotNow */
    async ofBody(body: unknown): Promise<object> {
      const parsed = parseBody(posted, body, 'a Pod');
      return 'Pod' in parsed ? explanation(parsed.Pod, parsed.NodeNames ?? undefined) : explanation(parsed);
    },
  };
}

const LABEL = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** @throws ArgsError if the name is invalid or there is no such pod; KubeError */
export async function readExplainedPod(client: Pick<KubeClient, 'get'>, name: string): Promise<Pod> {
  const [namespace = '', pod = '', ...more] = name.split('/');
  if (!LABEL.test(namespace) || !LABEL.test(pod) || more.length > 0)
    throw new ArgsError(`pod=${name}: expected namespace/name`);
  try {
    return explainedPod.parse(await client.get(`/api/v1/namespaces/${namespace}/pods/${pod}`));
  } catch (error) {
    if (isNotFound(error)) throw new ArgsError(`pod ${namespace}/${pod} does not exist`);
    throw error;
  }
}

/** It is in the answer once for each node. */
const MAX_REASON_CHARACTERS = 1024;

function writtenOut({ node, verdict, assumed }: ReturnType<ReturnType<Extender['explain']>[number]>) {
  const inFlight = assumed.map((pod) => ({ ...pod, cpus: pod.cpus?.toString() ?? '' }));
  if (!verdict.fits) {
    const { kind, text, missing } = verdict;
    const reason = cut(verdict.detail, MAX_REASON_CHARACTERS);
    return { node, fits: false, kind, text, reason, missing, inFlight };
  }
  const { score, cpus, cells, warnings } = verdict;
  return { node, fits: true, score, cpus: cpus?.toString() ?? '', numaNodes: cells, warnings, inFlight };
}
