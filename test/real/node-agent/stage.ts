import { type KubernetesObject, namespaceOf, podOf } from '../control-plane-stage.ts';
import { installPolicies, type PoliciesOptions } from '../webhook/policies-stage.ts';

const SYSTEM = 'plumbline-system';
const ACCOUNT = 'plumbline-node-agent';
export const DPUS = 'plumbline-dpu';

export type InstalledAgents = Awaited<ReturnType<typeof installAgents>>;

export async function installAgents(
  nodes: readonly string[],
  options: Pick<PoliciesOptions, 'apiServerArgs' | 'components'> = {},
) {
  const policies = await installPolicies({
    ...options,
    before: [namespaceOf('ovn-kubernetes')],
    after: nodes.flatMap((name): KubernetesObject[] => [
      { apiVersion: 'v1', kind: 'Node', metadata: { name } },
      podOf({ name: `agent-${name}`, namespace: SYSTEM }, { nodeName: name, serviceAccountName: ACCOUNT }),
    ]),
  });
  return {
    ...policies,
    agent: (node: string) => policies.account(SYSTEM, ACCOUNT, `agent-${node}`),
    unbound: () => policies.account(SYSTEM, ACCOUNT),
  };
}

/** The component of the agents of DPUs and their hosts. */
export const WITH_DPUS = { components: ['base/node-agent/components/dpu'] } as const;
