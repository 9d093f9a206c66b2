import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { CPU_MASK_ANNOTATION, PAUSED_START_ANNOTATION } from '../../../model/names.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { createCpuMasks } from '../../../scheduler-plugin/wiring/decider.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';

const MASK = { [CPU_MASK_ANNOTATION]: '2:3' };
const domain = { cpu: { sockets: 1, cores: 2, threads: 1 }, devices: {} };
const PAUSED = {
  phase: 'Running',
  nodeName: 'n1',
  activePods: { launcher: 'n1' },
  conditions: [{ type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: 'T' }],
};
const vmi = (name: string, annotations: object) => ({
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', annotations },
  spec: { domain },
  status: PAUSED,
});
const INSTANCES = [
  vmi('fits', MASK),
  vmi('too-large', { [CPU_MASK_ANNOTATION]: '40:41' }),
  vmi('starts', { ...MASK, [PAUSED_START_ANNOTATION]: 'paused T' }),
];

describe('the CPU masks in the extender', () => {
  const withMasks = async (
    active: boolean,
    use: (under: {
      masks: ReturnType<typeof createCpuMasks>;
      calls: string[];
      value: (name: string) => Promise<string | undefined>;
    }) => Promise<void>,
  ) => {
    const calls: string[] = [];
    const client = {
      get: async (path: string) => ({
        metadata: { resourceVersion: '1' },
        items: path.endsWith('/virtualmachineinstances') ? INSTANCES : [],
      }),
      watch: async (_: string, { signal }: { signal: AbortSignal }) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        throw new Error('the watch ends');
      },
      replace: async (path: string) => void calls.push(`replace ${path}`),
      patch: async (path: string) => void calls.push(`patch ${path}`),
    };
    const { state } = extenderOf({ nodes: { n1: statusOf() } });
    const registry = createRegistry();
    const masks = createCpuMasks({
      client: client as unknown as KubeClient,
      events: { record: () => undefined, flush: async () => undefined },
      fleet: state.fleet,
      metrics: createExtenderMetrics(registry),
      active: () => active,
      log: silent,
      now: () => performance.now() / 1000,
    });
    const value = async (name: string) =>
      (await registry.metrics())
        .split('\n')
        .find((line) => line.startsWith(`plumbline_extender_${name} `))
        ?.split(' ')[1];
    const ending = new AbortController();
    const running = masks.run(ending.signal);
    try {
      await use({ masks, calls, value });
    } finally {
      masks.starts.stop();
      ending.abort();
      await running;
    }
  };

  it('are counted by the active replica, and a pinned VM is resumed and counted', () =>
    withMasks(true, async ({ masks, calls, value }) => {
      await until('the count', async () => (await value('masked_vms')) === '3');
      assert.deepEqual(
        [await value('masked_vms_without_node'), await value('paused_starts'), await value('resumed_vms_total')],
        ['1', '1', '0'],
      );
      const state = { podUID: 'launcher', namespace: 'default', podName: 'virt-launcher', vcpus: 2 };
      masks.starts.reported('n1', [{ ...state, state: 'pinned' }]);
      await until('the VM to be resumed', () => calls.length === 2);
      const path = '/v1/namespaces/default/virtualmachineinstances/starts';
      assert.deepEqual(calls, [
        `replace /apis/subresources.kubevirt.io${path}/unpause`,
        `patch /apis/kubevirt.io${path}`,
      ]);
      assert.equal(await value('resumed_vms_total'), '1');
    }));

  it('are 0 on a replica that is not active', () =>
    withMasks(false, async ({ value }) => {
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(
        [await value('masked_vms'), await value('masked_vms_without_node'), await value('paused_starts')],
        ['0', '0', '0'],
      );
    }));
});
