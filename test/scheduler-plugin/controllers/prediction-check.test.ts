import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { createPredictionCheck } from '../../../scheduler-plugin/controllers/prediction-check.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { recordingLogger } from '../../support/logger.ts';
import { type ExtenderFixture, extenderOf, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

const VF = 'openshift.io/sriov_vf';
const devices = (free: number) => [{ resource: VF, groups: [{ cells: '1', total: 4, free }] }];
const OTHER = { podUID: 'other', container: 'c', cpus: '3,11' };

/** One node, whose report and pods the test changes. */
class Stage {
  readonly under: ReturnType<typeof extenderOf>;
  readonly events: string[] = [];
  readonly lines: Record<string, unknown>[];
  readonly #metrics = createExtenderMetrics(createRegistry());
  readonly #status: Partial<NodeTopologyStatus>;

  constructor(status: Partial<NodeTopologyStatus> = {}, fixture: ExtenderFixture = {}) {
    const { log, lines } = recordingLogger();
    this.lines = lines;
    this.#status = status;
    const nodes = { n1: statusOf(status) };
    this.under = extenderOf({ nodes, ...fixture });
    const check = createPredictionCheck({
      state: this.under.state,
      cluster: { pods: this.under.pods },
      events: { record: ({ name }, { reason, message }) => void this.events.push(`${name} ${reason}: ${message}`) },
      metrics: this.#metrics,
      log,
    });
    this.under.state.on('reservationEnded', check);
  }

  place(name: string, resources: readonly string[] = []): this {
    const pod = withUid(podOf('4', resources), name);
    assert.deepEqual(this.under.filter(pod).NodeNames, ['n1'], name);
    return this.bind(name, resources);
  }

  bind(name: string, resources: readonly string[] = [], status: object = {}): this {
    const pod = withUid(podOf('4', resources), name);
    this.under.see(onNode(pod), status);
    return this;
  }

  reject(name: string, reason = 'TopologyAffinityError', resources: readonly string[] = []): this {
    return this.bind(name, resources, { phase: 'Failed', reason });
  }

  /** @param owners CPUs by pod */
  report(owners: Readonly<Record<string, string>>, more: Partial<NodeTopologyStatus> = {}): this {
    const own = Object.entries(owners).map(([podUID, cpus]) => ({ podUID, container: 'compute', cpus }));
    const assignments = [...(this.#status.assignments ?? []), ...own];
    this.under.state.reportChanged('n1', statusOf({ ...this.#status, assignments, ...more }));
    return this;
  }

  /** The counted results. */
  async results(): Promise<Record<string, number>> {
    const { values } = await this.#metrics.predictions.get();
    return Object.fromEntries(values.flatMap(({ labels, value }) => (value > 0 ? [[labels.result, value]] : [])));
  }
}

describe('whether the kubelet did as predicted', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const PREDICTED = '1-2,9-10';
  const ALONE = { podUID: 'a', container: 'compute', cpus: '2-3,10-11' };
  const rows: readonly [
    title: string,
    act: (stage: Stage) => unknown,
    results: Readonly<Record<string, number>>,
    status?: Partial<NodeTopologyStatus>,
    fixture?: ExtenderFixture,
  ][] = [
    ['the CPUs of the prediction', (stage) => stage.place('a').report({ a: PREDICTED }), { as_predicted: 1 }],
    ['other CPUs', (stage) => stage.place('a').report({ a: '4-5,12-13' }), { other_cpus: 1 }],
    ['a rejection', (stage) => stage.place('a').reject('a'), { rejected: 1 }],
    [
      'a rejection that does not depend on CPUs, devices or memory',
      (stage) => stage.place('a').reject('a', 'NodeShutdown'),
      { not_compared: 1 },
    ],
    [
      'two pods in flight, in one report',
      (stage) => stage.place('a').place('b').report({ a: PREDICTED, b: '4-5,12-13' }),
      { not_compared: 2 },
    ],
    [
      'another pod ends before the pod is reported',
      (stage) => stage.place('a').report({}, { assignments: [ALONE] }),
      { not_compared: 1 },
      { assignments: [OTHER] },
      { bound: [{ node: 'n1', pod: withUid(podOf('2'), 'other') }] },
    ],
    [
      'a pod in the report is deleted before a rejection',
      (stage) => stage.place('a').reject('a'),
      { not_compared: 1 },
      { assignments: [OTHER] },
    ],
    [
      'the configuration of the kubelet changes meanwhile',
      (stage) =>
        stage.place('a').report({ a: '4-5,12-13' }, { topologyManager: { policy: 'restricted', scope: 'container' } }),
      { not_compared: 1 },
    ],
    ['a pod that the extender did not place', (stage) => stage.bind('a').report({ a: '4-5,12-13' }), {}],
    [
      'with a device: other CPUs, and the device is in the report a moment later',
      (stage) =>
        stage
          .place('a', [VF])
          .report({ a: PREDICTED })
          .report({ a: PREDICTED }, { devices: devices(3) }),
      { other_cpus: 1 },
      { devices: devices(4) },
    ],
    [
      'with a device: a rejection, because another pod took the device',
      (stage) => {
        stage.place('a', [VF]).reject('a', 'UnexpectedAdmissionError', [VF]);
        mock.timers.tick(30_000);
        stage.report({}, { devices: devices(0) });
      },
      { not_compared: 1 },
      { devices: devices(1) },
    ],
  ];
  for (const [title, act, results, status, fixture] of rows)
    it(`${title}: ${JSON.stringify(results)}`, async () => {
      const stage = new Stage(status, fixture);
      act(stage);
      mock.timers.tick(60_000);
      assert.deepEqual(await stage.results(), results);
      const differences = (results['other_cpus'] ?? 0) + (results['rejected'] ?? 0);
      assert.deepEqual([stage.lines.length, stage.events.length], [differences, differences]);
    });

  it('an Event on the pod has both results, and one line of the log has all inputs', () => {
    const stage = new Stage({ assignments: [OTHER] }, { bound: [{ node: 'n1', pod: withUid(podOf('2'), 'other') }] });
    stage.place('a');
    stage.report({ a: '4-5,12-13' });
    assert.deepEqual(stage.events, [
      'a PredictionDiffers: CPUs 1-2,9-10 of n1 were predicted, but the kubelet assigned CPUs 4-5,12-13',
    ]);
    const [{ node, pod, replay }] = stage.lines as [Record<string, unknown>];
    assert.deepEqual([node, pod], ['n1', 'default/a']);
    const { report, containers, version: _, ...rest } = replay as Record<string, unknown>;
    const results = { predicted: '1-2,9-10', actual: '4-5,12-13' };
    assert.deepEqual(rest, { node: 'n1', assigned: ['3,11'], usage: [[], []], ...results });
    assert.deepEqual((report as NodeTopologyStatus).cells, statusOf().cells);
    assert.deepEqual(containers, [
      { name: 'compute', kind: 'app', cpus: 4, devices: [], memory: [['memory', 1024 ** 3]] },
    ]);
  });

  it('a record that does not fit into a line of the log is left out', () => {
    const resource = (i: number) => `${'long.'.repeat(40)}dev/${i}`;
    const stage = new Stage({ devices: Array.from({ length: 64 }, (_, i) => ({ resource: resource(i), groups: [] })) });
    stage.place('a');
    stage.reject('a');
    assert.equal(stage.lines[0]?.['replay'], undefined);
    assert.equal(stage.lines[0]?.['actual'], 'TopologyAffinityError');
  });
});
