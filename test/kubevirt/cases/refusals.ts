import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { plumbline } from '../../cli/run.ts';
import { spoken } from '../../cli/spoken.ts';
import { machine, PATIENCE } from '../machines.ts';
import type { Cases } from '../stage.ts';

/** Launchers that a quota refuses. */
export const refusalCases: Cases = (stage) => {
  describe('refused launchers', () => {
    it('a quota denies with KubeVirt’s side containers in the sum, and explain names the owner of each CPU', async () => {
      const { client, create, cluster, remove } = stage();
      await cluster.plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'narrow' } });
      await client.create('/api/v1/namespaces/narrow/resourcequotas', {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'cpus', namespace: 'narrow' },
        spec: { hard: { 'limits.cpu': '6' } },
      });
      const cpu = { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
      const vm = { ...machine('wide', { cpu }), metadata: { name: 'wide', namespace: 'narrow' } };
      await create(vm);
      const text = await until('the denial', PATIENCE, () =>
        stage()
          .events('wide')
          .find((message) => message.includes('exceeded quota')),
      );
      assert.match(text, /requested: limits\.cpu=6015m, used: limits\.cpu=0, limited: limits\.cpu=6/);
      const args = ['explain', 'vm', 'wide', '-n', 'narrow', '-o', 'json'];
      const { stdout } = await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig });
      const { why, help } = spoken(stdout);
      assert.match(why, /6015m/);
      assert.match(help.join(), /side containers/);
      await remove(vm);
    });
  });
};
