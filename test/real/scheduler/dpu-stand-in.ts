import type { Stage } from './stage.ts';

/** Seconds that a renewal is valid here. */
const DURATION = 4;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases';
export const DPU_HOST = { 'k8s.ovn.org/dpu-host': '' };

/** The DPU of a node, as the API server sees it. */
export function createDpu(stage: Stage, node: string) {
  const name = `ovn-dpu-${node}`;
  const microTime = () => new Date().toISOString().replace('Z', '000Z');
  let timer: NodeJS.Timeout | undefined;
  const renew = () =>
    stage.client.patch(`${LEASES}/${name}`, 'application/merge-patch+json', { spec: { renewTime: microTime() } });
  return {
    async create() {
      const spec = { holderIdentity: 'ovnkube-dpu-node', leaseDurationSeconds: DURATION, renewTime: microTime() };
      const metadata = { name, namespace: 'ovn-kubernetes' };
      await stage.client.create(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    },
    live() {
      timer = setInterval(() => void renew().catch(() => undefined), 1000);
    },
    die() {
      clearInterval(timer);
    },
  };
}
