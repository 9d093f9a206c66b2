import assert from 'node:assert/strict';
import { KubeError } from '../../../kube/client.ts';
import { ArgsError } from '../../../scheduler-plugin/extender/args.ts';
import { createExplainer, readExplainedPod } from '../../../scheduler-plugin/extender/explain.ts';
import { type ExtenderFixture, extenderOf, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

interface Explanation {
  readonly active: boolean;
  readonly pod: object;
  readonly reservation?: { readonly kind: string; readonly nodes: object };
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
  readonly decisions?: readonly { readonly uid: string }[];
}

const setUp = (fixture: ExtenderFixture = {}, found: object | Error = podOf('4')) => {
  const under = extenderOf(fixture);
  const paths: string[] = [];
  const client = {
    get: async (path: string) => {
      paths.push(path);
      if (found instanceof Error) throw found;
      return found;
    },
  };
  const state = { active: true };
  const { extender, decisions } = under;
  const explainer = createExplainer({ extender, decisions, client, isActive: () => state.active });
  return {
    ...under,
    paths,
    replica: state,
    client,
    explainer,
    ofPod: async (name: string | null) => (await explainer.ofPod(name)) as Explanation,
    ofBody: async (body: unknown) => (await explainer.ofBody(JSON.parse(JSON.stringify(body)))) as Explanation,
  };
};

describe('the explanation of a pod', () => {
  it('reads the pod from the API server and lists only its decisions', async () => {
    const { ofPod, filter, paths, replica } = setUp();
    filter(podOf('4'));
    filter(withUid(podOf('2'), 'other'));
    const explained = await ofPod('default/vm');
    assert.deepEqual(paths, ['/api/v1/namespaces/default/pods/vm']);
    assert.deepEqual(
      [explained.active, explained.pod, explained.decisions?.map(({ uid }) => uid)],
      [true, { namespace: 'default', name: 'vm', uid: 'pod-uid' }, ['pod-uid']],
    );
    replica.active = false;
    assert.equal((await ofPod('default/vm')).active, false);
  });

  for (const name of ['', 'vm', 'a/b/c', 'a/B', '../secrets']) {
    it(`refuses pod=${name} and does not ask the API server`, async () => {
      const { client, paths } = setUp();
      await assert.rejects(readExplainedPod(client, name), new ArgsError(`pod=${name}: expected namespace/name`));
      assert.deepEqual(paths, []);
    });
  }

  it('reports a pod that does not exist, and passes on other failures', async () => {
    const gone = setUp({}, new KubeError(404, 'NotFound', 'no'));
    await assert.rejects(gone.ofPod('default/vm'), new ArgsError('pod default/vm does not exist'));
    const failure = new KubeError(503, 'ServiceUnavailable', 'down');
    await assert.rejects(setUp({}, failure).ofPod('default/vm'), failure);
  });

  it('accepts a pod without a name, a namespace and a uid, for all nodes', async () => {
    const { ofBody } = setUp({ nodes: { n1: statusOf(), n2: statusOf() } });
    const nameless = { ...podOf('4'), metadata: {} };
    for (const body of [nameless, { Pod: nameless }, { Pod: nameless, NodeNames: null }]) {
      const { pod, nodes, reservation } = await ofBody(body);
      assert.deepEqual(
        [pod, nodes.map(({ node }) => node), reservation],
        [{ namespace: '', name: '', uid: '' }, ['n1', 'n2'], undefined],
      );
    }
    const { nodes } = await ofBody({ Pod: nameless, NodeNames: ['n2', 'gone'] });
    const shown = nodes.map(({ node, fits, text }) => [node, fits, text]);
    assert.deepEqual(shown, [
      ['n2', true, undefined],
      ['gone', false, 'node is not known yet'],
    ]);
  });

  it('shows the reserved CPUs, and an empty text where they are not predicted', async () => {
    const nodes = { n1: statusOf(), odd: statusOf({ kubeletVersion: 'v1.99.0' }) };
    const { filter, ofBody, see } = setUp({ nodes, policy: 'count-check' });
    filter(podOf('4'));
    const { reservation, nodes: shown } = await ofBody(podOf('4'));
    assert.deepEqual(reservation, { kind: 'tentative', nodes: { n1: '1-2,9-10', odd: '' } });
    assert.deepEqual(
      shown.map(({ node, cpus, inFlight }) => [node, cpus, inFlight]),
      [
        ['n1', '1-2,9-10', []],
        ['odd', '', []],
      ],
    );
    const bound = withUid(podOf('2'), 'bound');
    see(onNode(bound, 'odd'));
    const [n1, odd] = (await ofBody(withUid(podOf('4'), 'next'))).nodes;
    assert.deepEqual(n1?.['inFlight'], [{ uid: 'pod-uid', kind: 'tentative', cpus: '1-2,9-10' }]);
    assert.deepEqual(odd?.['inFlight'], [
      { uid: 'pod-uid', kind: 'tentative', cpus: '' },
      { uid: 'bound', kind: 'bound', cpus: '' },
    ]);
    assert.deepEqual((await ofBody(bound)).reservation, { kind: 'bound', nodes: { odd: '' } });
  });
});
