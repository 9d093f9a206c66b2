import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { cpusOf, machine, PATIENCE } from '../machines.ts';
import type { Cases } from '../stage.ts';

const FOUR = { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
const EVEN_PARITY = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';
const KUBEVIRT_CR = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = 'application/merge-patch+json';

/** A feature that the stand-in does not have: the annotation of the KubeVirt object. */
export const featureCases: Cases = (stage) => {
  describe('features of KubeVirt itself', () => {
    it('AlignCPUs with its annotation: KubeVirt requests an even number, or 5 with a pool, and Plumbline continues from there', async () => {
      const { client, create, launcher, vmi, remove } = stage();
      await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: '' } } });
      const pool = { domain: { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 1 } } };
      const cases = [
        ['parity', machine('parity', { annotations: {}, cpu: FOUR }), '6'],
        ['pooled', machine('pooled', { annotations: {}, cpu: { ...FOUR, cores: 2 }, spec: pool }), '6'],
      ] as const;
      try {
        for (const [name, vm, cpus] of cases) {
          await until('KubeVirt to have the annotation', PATIENCE, async () => {
            await create(vm);
            const found = await until('the VMI', PATIENCE, () => vmi(name));
            if (found.metadata.annotations?.[EVEN_PARITY] !== undefined) return true;
            await remove(vm);
            return undefined;
          });
          assert.equal(cpusOf(await launcher(name)), cpus);
          await remove(vm);
        }
      } finally {
        await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: null } } });
      }
    });
  });
};
