import assert from 'node:assert/strict';
import { createReports } from '../../console/server/reports.ts';
import { hostsOf } from '../../diagnosis/hosts.ts';
import { NODE_TOPOLOGY_API, nodeTopology, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import { Report } from '../../node-agent/report/report.ts';
import { createKindReader } from '../../webhook/cluster/kind-reader.ts';
import { createFakeApi } from '../node-agent/api-stand-in.ts';
import { inputs } from '../node-agent/report/inputs-fixture.ts';
import { testMetrics, useDuties } from '../node-agent/support.ts';
import { extenderOf, podOf, statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLogger } from '../support/logger.ts';

/** Possible reports of later agents: known fields and more, or a completely different form. */
const MORE = {
  ...statusOf(),
  moreOfTheNode: { a: 1 },
  cells: statusOf().cells.map((cell) => ({ ...cell, more: 'x' })),
};
const OTHER = { format: 2, cells: { 0: 'all' }, assignments: 'elsewhere' };
const SAID = /^the report has format "2", and this version of Plumbline reads format 1: upgrade webhook and extender/;

describe('reports from agents of other versions', () => {
  const arrive = (under: ReturnType<typeof extenderOf>, node: string, raw: unknown) => {
    const { data, error } = nodeTopologyStatus.safeParse(raw);
    under.state.reportChanged(node, data, error);
  };

  it('with more fields: extender, webhook and command read the known ones', () => {
    const [plain, more] = [extenderOf({ nodes: { n1: statusOf() } }), extenderOf({ nodes: { n1: undefined } })];
    arrive(more, 'n1', MORE);
    assert.deepEqual(more.filter(podOf('4')), plain.filter(podOf('4')));
    assert.equal(more.state.faults.size, 0);
    const readRaw = createKindReader();
    assert.deepEqual(readRaw(MORE), readRaw(statusOf()));
    assert.deepEqual(nodeTopology.parse(objectOf(MORE)).status, nodeTopologyStatus.parse(statusOf()));
  });

  it('of another format: the extender refuses only that node, with the reason, and accepts it again when it can read it', () => {
    const under = extenderOf({ nodes: { old: statusOf(), newer: statusOf() } });
    arrive(under, 'newer', OTHER);
    assert.match(under.state.faults.get('newer')?.message ?? '', SAID);
    assert.ok(under.notified.includes('quarantined newer'));
    const { NodeNames, FailedAndUnresolvableNodes } = under.filter(podOf('4'), ['old', 'newer']);
    assert.deepEqual(NodeNames, ['old']);
    assert.match(FailedAndUnresolvableNodes['newer'] ?? '', /report is quarantined; see its Events/);
    arrive(under, 'newer', statusOf());
    assert.deepEqual(under.filter(podOf('4'), ['newer']).NodeNames, ['newer']);
  });

  it('of another format: CPUs that were reserved there before stay reserved', () => {
    const under = extenderOf({ nodes: { n1: statusOf() } });
    const pod = podOf('14');
    assert.deepEqual(under.filter(pod, ['n1']).NodeNames, ['n1']);
    arrive(under, 'n1', OTHER);
    arrive(under, 'n1', statusOf());
    assert.ok(under.state.reservations.of(pod.metadata.uid ?? '') !== undefined);
  });

  it('of another format: the webhook ignores them, with the reason', () => {
    const read = createKindReader()(OTHER);
    assert.ok('code' in read && read.code === 'unknown-format');
    assert.match(read.message, SAID);
  });

  it('of another format: the console shows the node without them', () => {
    const reports = createReports(() => undefined);
    reports.take('n1', OTHER);
    const nothing = { assignments: [], refusals: [], pinning: [], conditions: [], resources: [], usage: '' };
    assert.deepEqual(reports.byNode.get('n1'), { shape: undefined, ...nothing });
  });

  it('of another format: the command names the format and omits the node', () => {
    const topology = nodeTopology.parse(objectOf(OTHER));
    assert.equal(topology.status, undefined);
    assert.match(hostsOf([topology]).unusable.get('n1') ?? '', SAID);
  });
});

describe('an agent that was rolled back, or whose cluster was not upgraded', () => {
  const NODE = 'n1';
  const PATH = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}/${NODE}`;
  const start = useDuties();

  it('replaces the report of a later agent that it cannot read', async () => {
    const [api, logged] = [createFakeApi(NODE), recordingLogger()];
    api.objects.set(PATH, objectOf(OTHER));
    const reported = async () => ({ ...inputs, pinsVms: false });
    const deps = { nodeName: NODE, inputs: reported, subscribe: () => () => undefined, log: logged.log };
    start(new Report({ ...deps, client: api.client, metrics: testMetrics() }));
    await eventually(() => logged.said('published node topology'), 'the report to be published');
    const { status } = nodeTopology.parse(api.objects.get(PATH));
    assert.deepEqual([status?.format, status?.pinsVMs], [undefined, false]);
    assert.ok(!logged.said('publishing the node topology failed; retrying'));
  });
});

function objectOf(status: object) {
  const { apiVersion, kind } = NODE_TOPOLOGY_API;
  return { apiVersion, kind, metadata: { name: 'n1' }, status };
}

it('annotations from a later webhook are read without the unknown fields', () => {
  const text = JSON.stringify({ format: 2, preferred: ['plumbline.dev/tunnel'], spansCells: true });
  const preferences = { preferred: ['plumbline.dev/tunnel'], spansCells: true, guestThreads: 1, interfaces: {} };
  assert.deepEqual(parsePreferences(text), preferences);
});
