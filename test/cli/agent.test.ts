import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type AskAgent, agentOf, fetchOvsStatus } from '../../cli/agent/ask.ts';
import type { OpenPort } from '../../cli/extender/port-forward.ts';
import { usingCluster } from '../../cli/support/cluster.ts';
import { EXIT } from '../../cli/support/exit-status.ts';
import { KubeError } from '../../kube/client.ts';
import { createLogger } from '../../runtime/log.ts';
import { Registry } from '../../runtime/metrics.ts';
import { createProbeServer } from '../../runtime/probes.ts';
import { useCluster } from './cluster-fixture.ts';
import { assertFails } from './run.ts';

const OVS = { enabled: true, enablerFile: '/etc/x', desired: '0-3', why: [], problems: [], sources: [], processes: [] };
const LABELS = { 'app.kubernetes.io/name': 'plumbline-node-agent' };
const ENDING = { phase: 'Succeeded' };
const RUNNING = { phase: 'Running' };

describe('the agent of a node, reached through the API server', function () {
  this.timeout(120_000);
  const cluster = useCluster((made) => made.namespace('plumbline-system'));
  let server: ReturnType<typeof createProbeServer>;
  const agent = (name: string, node: string, status: Readonly<Record<string, unknown>>) =>
    cluster.pod(name, { namespace: 'plumbline-system', node, labels: LABELS, status });
  before(async () => {
    await agent('agent-old', 'worker-1', ENDING);
    await agent('agent-1', 'worker-1', RUNNING);
    await agent('agent-2', 'worker-2', RUNNING);
    await cluster.pod('other', { namespace: 'plumbline-system', node: 'worker-3', status: RUNNING });
    server = createProbeServer({
      host: '127.0.0.1',
      port: 0,
      notReady: () => undefined,
      registry: new Registry(),
      pages: { '/ovs': () => OVS },
      log: createLogger('test', 'silent'),
    });
    await server.start();
  });
  after(() => server?.stop(0));

  /** Replaces the API server and the kubelet, which the tests of the port-forward cover. */
  const forwarded: OpenPort = (_, target, signal) => {
    assert.equal(signal.aborted, false);
    targets.push(`${target.namespace}/${target.pod}:${target.port}`);
    return Promise.resolve(connect(server.port, '127.0.0.1'));
  };
  const targets: string[] = [];
  const ask =
    (node: string, open: OpenPort = forwarded): AskAgent =>
    (path) =>
      usingCluster({ kubeconfig: cluster.kubeconfig }, (access) => agentOf(access, node, 8082, open)(path));

  it('is the running pod on that node, and gives the same answer as on the node', async () => {
    assert.deepEqual(await fetchOvsStatus(ask('worker-1')), OVS);
    assert.deepEqual(await fetchOvsStatus(ask('worker-2')), OVS);
    assert.deepEqual(targets, ['plumbline-system/agent-1:8082', 'plumbline-system/agent-2:8082']);
  });

  const refused = (message: RegExp, status: number) => (error: { message: string; status: number }) => {
    assert.match(error.message, message);
    return error.status === status;
  };

  for (const node of ['worker-3', 'none']) {
    it(`is reported as not found for node ${node}, which has no agent`, () =>
      assert.rejects(fetchOvsStatus(ask(node)), refused(new RegExp(`^no agent runs on node ${node} `), EXIT.notFound)));
  }

  const DENIED = /not allowed to reach the agent \(pods\/portforward in plumbline-system\)/;
  const DOWN = /^agent-1:8082\/ovs: 502: check that the API server reaches the kubelet/;
  for (const [what, error, message] of [
    ['denied permission', new KubeError(403, 'Forbidden', 'no'), DENIED],
    ['a kubelet that is down', new KubeError(502, 'BadGateway', 'no'), DOWN],
    ['a lost connection', new Error('the connection was closed'), /^agent-1:8082\/ovs: the connection was closed$/],
  ] as const) {
    it(`${what}: one line, status 3`, () => {
      const failing = ask('worker-1', () => Promise.reject(error));
      return assert.rejects(fetchOvsStatus(failing), refused(message, EXIT.unreachable));
    });
  }

  it('is selected by the node’s name, which is completed; an invalid agent address is refused', async () => {
    assertFails(await cluster.run('ovs', 'status', 'worker-3'), 4, /: no agent runs on node worker-3 /);
    await cluster.node('worker-1');
    const completed = await cluster.run('__complete', 'vm', 'status', 'work');
    assert.equal(completed.stdout, 'worker-1\n');
    const expected =
      /--agent 'here': expected a URL such as http:\/\/127\.0\.0\.1:8082; see plumbline vm status --help$/m;
    assertFails(await cluster.run('vm', 'status', '--agent', 'here'), 2, expected);
  });
});
