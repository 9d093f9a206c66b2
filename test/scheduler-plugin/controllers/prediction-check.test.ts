import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { createPredictionCheck } from '../../../scheduler-plugin/controllers/prediction-check.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { recordingLogger } from '../../support/logger.ts';
import {
  type ExtenderFixture,
  type ExtenderUnderTest,
  extenderOf,
  podOf,
  statusOf,
  withUid,
} from '../extender-fixture.ts';

const VF = 'openshift.io/sriov_vf';
const devices = (free: number) => [{ resource: VF, groups: [{ cells: '1', total: 4, free }] }];
const OTHER = { podUID: 'other', container: 'c', cpus: '3,11' };

/** One node, whose report and pods the test changes. */
class Stage {
  readonly under: ExtenderUnderTest;
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
    this.under.state.on('reservationEnded', (reservation, end) => check.ended(reservation, end));
  }

  place(name: string, resources: readonly string[] = []): void {
    const pod = withUid(podOf('4', resources), name);
    assert.deepEqual(this.under.filter(pod).NodeNames, ['n1'], name);
    this.bind(name, resources);
  }

  bind(name: string, resources: readonly string[] = [], status: object = {}): void {
    const pod = withUid(podOf('4', resources), name);
    this.under.see({ ...pod, spec: { ...pod.spec, nodeName: 'n1' } }, status);
  }

  reject(name: string, reason = 'TopologyAffinityError', resources: readonly string[] = []): void {
    this.bind(name, resources, { phase: 'Failed', reason });
  }

  /** @param owners CPUs by pod */
  report(owners: Readonly<Record<string, string>>, more: Partial<NodeTopologyStatus> = {}): void {
    const own = Object.entries(owners).map(([podUID, cpus]) => ({ podUID, container: 'compute', cpus }));
    const assignments = [...(this.#status.assignments ?? []), ...own];
    this.under.state.reportChanged('n1', statusOf({ ...this.#status, assignments, ...more }));
  }

  /** The counted results. */
  async results(): Promise<Record<string, number>> {
    const { values } = await this.#metrics.predictions.get();
    return Object.fromEntries(
      values.filter(({ value }) => value > 0).map(({ labels, value }) => [labels.result, value]),
    );
  }
}

describe('whether the kubelet did as predicted', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const PREDICTED = '1-2,9-10';
  const rows: readonly {
    title: string;
    status?: Partial<NodeTopologyStatus>;
    fixture?: ExtenderFixture;
    act: (stage: Stage) => void;
    results: Readonly<Record<string, number>>;
  }[] = [
    {
      title: 'the CPUs of the prediction',
      act: (stage) => {
        stage.place('a');
        stage.report({ a: PREDICTED });
      },
      results: { as_predicted: 1 },
    },
    {
      title: 'other CPUs',
      act: (stage) => {
        stage.place('a');
        stage.report({ a: '4-5,12-13' });
      },
      results: { other_cpus: 1 },
    },
    {
      title: 'a rejection',
      act: (stage) => {
        stage.place('a');
        stage.reject('a');
      },
      results: { rejected: 1 },
    },
    {
      title: 'a rejection that does not depend on CPUs, devices or memory',
      act: (stage) => {
        stage.place('a');
        stage.reject('a', 'NodeShutdown');
      },
      results: { not_compared: 1 },
    },
    {
      title: 'two pods in flight, in one report',
      act: (stage) => {
        stage.place('a');
        stage.place('b');
        stage.report({ a: PREDICTED, b: '4-5,12-13' });
      },
      results: { not_compared: 2 },
    },
    {
      title: 'another pod ends before the pod is reported',
      status: { assignments: [OTHER] },
      fixture: { bound: [{ node: 'n1', pod: withUid(podOf('2'), 'other') }] },
      act: (stage) => {
        stage.place('a');
        stage.report({}, { assignments: [{ podUID: 'a', container: 'compute', cpus: '2-3,10-11' }] });
      },
      results: { not_compared: 1 },
    },
    {
      title: 'a pod in the report is deleted before a rejection',
      status: { assignments: [OTHER] },
      act: (stage) => {
        stage.place('a');
        stage.reject('a');
      },
      results: { not_compared: 1 },
    },
    {
      title: 'the configuration of the kubelet changes meanwhile',
      act: (stage) => {
        stage.place('a');
        stage.report({ a: '4-5,12-13' }, { topologyManager: { policy: 'restricted', scope: 'container' } });
      },
      results: { not_compared: 1 },
    },
    {
      title: 'a kubelet that is not predicted',
      status: { kubeletVersion: 'v9.9.9' },
      fixture: { policy: 'count-check' },
      act: (stage) => {
        stage.place('a');
        stage.report({ a: PREDICTED });
      },
      results: { not_compared: 1 },
    },
    {
      title: 'a pod that is deleted before it is reported',
      act: (stage) => {
        stage.place('a');
        stage.under.gone(withUid(podOf('4'), 'a'));
      },
      results: { not_compared: 1 },
    },
    {
      title: 'a pod that the extender did not place',
      act: (stage) => {
        stage.bind('a');
        stage.report({ a: '4-5,12-13' });
      },
      results: {},
    },
    {
      title: 'with a device: other CPUs, and the device is in the report a moment later',
      status: { devices: devices(4) },
      act: (stage) => {
        stage.place('a', [VF]);
        stage.report({ a: PREDICTED });
        stage.report({ a: PREDICTED }, { devices: devices(3) });
      },
      results: { other_cpus: 1 },
    },
    {
      title: 'with a device: a rejection',
      status: { devices: devices(1) },
      act: (stage) => {
        stage.place('a', [VF]);
        stage.reject('a', 'UnexpectedAdmissionError', [VF]);
      },
      results: { rejected: 1 },
    },
    {
      title: 'with a device: a rejection, because another pod took the device',
      status: { devices: devices(1) },
      act: (stage) => {
        stage.place('a', [VF]);
        stage.reject('a', 'UnexpectedAdmissionError', [VF]);
        mock.timers.tick(30_000);
        stage.report({}, { devices: devices(0) });
      },
      results: { not_compared: 1 },
    },
  ];
  for (const { title, status, fixture, act, results } of rows) {
    it(`${title}: ${JSON.stringify(results)}`, async () => {
      const stage = new Stage(status, fixture);
      act(stage);
      mock.timers.tick(60_000);
      assert.deepEqual(await stage.results(), results);
      const differences = (results['other_cpus'] ?? 0) + (results['rejected'] ?? 0);
      assert.equal(stage.lines.length, differences);
      assert.equal(stage.events.length, differences);
    });
  }

  it('an Event on the pod has both results, and one line of the log has all inputs', () => {
    const stage = new Stage({ assignments: [OTHER] }, { bound: [{ node: 'n1', pod: withUid(podOf('2'), 'other') }] });
    stage.place('a');
    stage.report({ a: '4-5,12-13' });
    assert.deepEqual(stage.events, [
      'a PredictionDiffers: CPUs 1-2,9-10 of n1 were predicted, but the kubelet assigned CPUs 4-5,12-13',
    ]);
    const [{ node, pod, replay }] = stage.lines as [Record<string, unknown>];
    assert.deepEqual([node, pod], ['n1', 'default/a']);
    const { report, containers, ...rest } = replay as Record<string, unknown>;
    assert.deepEqual(rest, {
      version: (rest as { version: string }).version,
      node: 'n1',
      assigned: ['3,11'],
      usage: [[], []],
      predicted: '1-2,9-10',
      actual: '4-5,12-13',
    });
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
