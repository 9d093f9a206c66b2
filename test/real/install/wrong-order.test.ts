import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { isNotFound } from '../../../kube/client.ts';
import { until } from '../../support/until.ts';
import { type KubernetesObject, onControlPlane } from '../control-plane-stage.ts';
import { SYSTEM } from './daemons-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { type OrderStage, startOrderStage, UNTOUCHED } from './order-stage.ts';
import { objectsOf, render, secretPath } from './rendered-fixture.ts';

const ASIDE = ['components/no-cert-manager'];
const missing = (said: string) =>
  [...new Set([...said.matchAll(/no matches for kind "(\w+)"/g)].map(([, kind]) => kind))].sort();

describe('an installation in the wrong order, on a real API server', function () {
  onControlPlane(this);
  this.timeout(600_000);

  describe('without any of the other products', () => {
    let stage: OrderStage;
    before(async () => {
      stage = await startOrderStage([]);
    });
    after(() => stage?.stop());

    it('without cert-manager, kubectl names the missing kinds and applies the rest, and no pod is refused', async () => {
      const { status, said } = stage.apply(render('base'));
      assert.deepEqual([status, missing(said)], [1, ['Certificate', 'Issuer']]);
      assert.equal(await stage.isSwitchedOn(), false);
      await assert.rejects(stage.plane.client.get(secretPath('plumbline-webhook-tls')), isNotFound);
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
    });

    it('the component no-cert-manager applies, and the webhook switches itself on when it has certificates', async () => {
      assert.deepEqual(stage.apply(render('base', ASIDE)), { status: 0, said: '' });
      stage.certificates();
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
      await stage.startWebhook();
      await until('the webhook to be switched on', stage.isSwitchedOn);
      await until('an ordinary pod to be rounded', async () => (await stage.verdict()).aligned === '4 CPUs');
      assert.deepEqual(
        await stage.verdict(),
        { ...UNTOUCHED, aligned: '4 CPUs' },
        'launchers without a VMI are left as they are',
      );
    });

    it('a second apply, server-side or client-side, has no conflict, and the webhook stays switched on', async () => {
      const yaml = render('base', ASIDE);
      assert.deepEqual(stage.apply(yaml), { status: 0, said: '' });
      const { status, said } = stage.kubectl(['apply', '-f', '-'], yaml);
      assert.equal(status, 0, said);
      assert.equal(stage.kubectl(['apply', '-f', '-'], yaml).status, 0);
      assert.equal(await stage.isSwitchedOn(), true);
      const got = await stage.verdict();
      assert.equal(got.aligned, '4 CPUs');
    });

    it('without the Prometheus operator, kubectl names the missing kinds of the component monitoring', () => {
      const monitored = stage.apply(
        render('base', [...ASIDE, 'components/monitoring']),
        '--dry-run=server',
        '--force-conflicts',
      );
      assert.deepEqual([monitored.status, missing(monitored.said)], [1, ['PrometheusRule', 'ServiceMonitor']]);
    });
  });

  describe('in reverse order', () => {
    let stage: OrderStage;
    let webhook: Awaited<ReturnType<OrderStage['startWebhook']>>;
    before(async () => {
      stage = await startOrderStage(DEFINITIONS);
      await stage.plane.startControllers(['namespace-controller']);
    });
    after(() => stage?.stop());

    const yamlOf = (objects: readonly KubernetesObject[]) => objects.map((object) => stringify(object)).join('---\n');

    it('no pod is refused while webhook configurations are applied first and the namespace last', async () => {
      const objects = objectsOf(render('base')).toReversed();
      const isFirst = ({ kind }: KubernetesObject) => kind.endsWith('WebhookConfiguration');
      const kinds = new Set([...objects.filter(isFirst), ...objects].map(({ kind }) => kind));
      const refused: string[] = [];
      for (const kind of kinds) {
        const { status, said } = stage.apply(yamlOf(objects.filter((object) => object.kind === kind)));
        if (status !== 0) refused.push(kind);
        assert.ok(status === 0 || /namespaces "plumbline-system" not found/.test(said), said);
        assert.deepEqual(await stage.verdict(), UNTOUCHED, `after ${kind}`);
      }
      assert.ok(refused.includes('Deployment') && refused.includes('RoleBinding'), refused.join());
      assert.ok(!refused.some((kind) => kind.endsWith('WebhookConfiguration')));
    });

    it('a second apply completes the installation, and no pod is refused', async () => {
      assert.deepEqual(stage.apply(render('base')), { status: 0, said: '' });
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
    });

    it('the webhook switches itself on when it has certificates, and pads launchers', async () => {
      stage.certificates();
      webhook = await stage.startWebhook();
      await until('the webhook to be switched on', stage.isSwitchedOn);
      await until('launchers to be padded', async () => (await stage.verdict()).asking === '10 CPUs');
      assert.deepEqual(await stage.verdict(), { ...UNTOUCHED, asking: '10 CPUs', aligned: '4 CPUs' });
    });

    it('webhook configurations that stay after only the namespace is deleted refuse nothing', async () => {
      await webhook.stop();
      assert.equal(stage.kubectl(['delete', 'namespace', SYSTEM, '--wait=false']).status, 0);
      await until('nothing to be refused', async () => (await stage.verdict()).asking === UNTOUCHED.asking);
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
    });
  });
});
