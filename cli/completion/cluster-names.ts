import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { machinesPath } from '../../kube/cluster-view/vmis.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { named, readAll } from '../support/lists.ts';

/** The user who presses Tab does not wait longer. */
const PATIENCE_SECONDS = 2;

const PATHS = {
  vm: machinesPath,
  pod: (namespace: string) => `/api/v1/namespaces/${namespace}/pods`,
  node: () => NODE_TOPOLOGIES_PATH,
  namespace: () => '/api/v1/namespaces',
} as const;

/** Objects of a kind, or contexts of the kubeconfig. @throws if the cluster does not answer */
export const namesOf: Names = async (kind, cluster) => {
  if (kind === 'context') {
    const { findCluster } = await import('../support/connection.ts');
    return findCluster({ kubeconfig: cluster.kubeconfig }).contexts.map(({ name }) => name);
  }
  return usingCluster(
    { ...cluster, requestTimeout: PATIENCE_SECONDS },
    async ({ client, namespace: defaultNamespace }) => {
      const objects = await readAll(client, PATHS[kind](defaultNamespace), named);
      return objects.map(({ metadata }) => metadata.name ?? '');
    },
  );
};

export type Names = (
  kind: 'vm' | 'pod' | 'node' | 'namespace' | 'context',
  cluster: ClusterWords,
) => Promise<readonly string[]>;

export type ClusterWords = Pick<ClusterFlags, 'namespace' | 'kubeconfig' | 'context'>;
