import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { isNotFound } from '../../../kube/errors.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { SYSTEM } from './daemons.ts';
import { DEFINITIONS } from './foreign-definitions.ts';
import { type OrderStage, type RunningWebhook, startOrderStage, UNTOUCHED } from './order-stage.ts';
import { objectsOf, render } from './rendered.ts';

const ASIDE = ['components/no-cert-manager'];
const SECRET = `/api/v1/namespaces/${SYSTEM}/secrets/plumbline-webhook-tls`;
/** Kinds without which kubectl says so, for each: whose they are. */
const missing = (said: string) =>
  [...new Set([...said.matchAll(/no matches for kind "(\w+)"/g)].map(([, kind]) => kind))].sort();

/** A row for the report: what was applied, what the API server said, what pods got. */
function tell(order: string, said: string, got: object): void {
  console.log(`      ${order} | ${said} | ${JSON.stringify(got)}`);
}

describe('an installation in the wrong order, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(600_000);

  describe('where none of the other products is installed', () => {
    let stage: OrderStage;
    before(async () => {
      stage = await startOrderStage([]);
    });
    after(() => stage?.stop());

    it('without cert-manager: kubectl names what is missing, all else is there, and nothing is refused', async () => {
      const { status, said } = stage.apply(render('base'));
      assert.deepEqual([status, missing(said)], [1, ['Certificate', 'Issuer']]);
      assert.equal(await stage.isSwitchedOn(), false);
      await assert.rejects(stage.plane.client.get(SECRET), isNotFound);
      const got = await stage.verdict();
      tell('base without cert-manager', `status 1, no matches for kind ${missing(said).join(', ')}`, got);
      assert.deepEqual(got, UNTOUCHED);
    });

    it('the component for clusters without it applies, and with certificates the webhook switches itself on', async () => {
      assert.deepEqual(stage.apply(render('base', ASIDE)), { status: 0, said: '' });
      stage.certificates();
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
      await stage.startWebhook();
      await until('the webhook to be switched on', stage.isSwitchedOn);
      await until('an ordinary pod to be rounded', async () => (await stage.verdict()).aligned === '4 CPUs');
      const got = await stage.verdict();
      tell('base with no-cert-manager, without KubeVirt and multus', 'status 0', got);
      assert.deepEqual(got, { ...UNTOUCHED, aligned: '4 CPUs' }, 'launchers without a VMI are left as they are');
    });

    it('twice: without a conflict, by either way of applying, and the webhook stays switched on', async () => {
      const yaml = render('base', ASIDE);
      assert.deepEqual(stage.apply(yaml), { status: 0, said: '' });
      const { status, said } = stage.kubectl(['apply', '-f', '-'], yaml);
      assert.equal(status, 0, said);
      assert.equal(stage.kubectl(['apply', '-f', '-'], yaml).status, 0);
      assert.equal(await stage.isSwitchedOn(), true);
      const got = await stage.verdict();
      tell('base twice', 'status 0, server-side and client-side', got);
      assert.equal(got.aligned, '4 CPUs');
    });

    it('every overlay applies without the kinds of products that are not there', async () => {
      await stage.plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } });
      const dryRun = (yaml: string) => stage.apply(yaml, '--dry-run=server', '--force-conflicts');
      for (const overlay of ['kubevirt-ovn-kubernetes', 'dpu-host']) {
        const { status, said } = dryRun(render(`overlays/${overlay}`, ASIDE));
        // A dry run makes no namespace for what is in it, and kubectl warns of the client-side apply of before.
        const left = said.split('\n').filter((line) => !/^Warning:|namespaces "plumbline-dpu" not found/.test(line));
        assert.equal(left.join('\n'), '', overlay);
        assert.equal(status, /plumbline-dpu/.test(said) ? 1 : 0, said);
      }
      for (const overlay of ['dpu', 'development']) {
        const { status, said } = dryRun(render(`overlays/${overlay}`));
        assert.equal(status, 0, said);
      }
      const monitored = dryRun(render('base', [...ASIDE, 'components/monitoring']));
      tell(
        'base with monitoring, without Prometheus’ kinds',
        `status ${monitored.status}, no matches for kind ${missing(monitored.said).join(', ')}`,
        await stage.verdict(),
      );
      assert.deepEqual([monitored.status, missing(monitored.said)], [1, ['PrometheusRule', 'ServiceMonitor']]);
    });
  });

  describe('upside down', () => {
    let stage: OrderStage;
    let webhook: RunningWebhook;
    let bundle = '';
    before(async () => {
      stage = await startOrderStage(DEFINITIONS);
      await stage.plane.startControllers(['namespace-controller']);
    });
    after(() => stage?.stop());

    const yamlOf = (objects: readonly KubernetesObject[]) => objects.map((one) => stringify(one)).join('---\n');

    it('webhook configurations first and the namespace last: nothing is refused at any step', async () => {
      const objects = objectsOf(render('base')).toReversed();
      const isFirst = ({ kind }: KubernetesObject) => kind.endsWith('WebhookConfiguration');
      const kinds = new Set([...objects.filter(isFirst), ...objects].map(({ kind }) => kind));
      const refused: string[] = [];
      for (const kind of kinds) {
        const { status, said } = stage.apply(yamlOf(objects.filter((one) => one.kind === kind)));
        if (status !== 0) refused.push(kind);
        assert.ok(status === 0 || /namespaces "plumbline-system" not found/.test(said), said);
        assert.deepEqual(await stage.verdict(), UNTOUCHED, `after ${kind}`);
      }
      tell('base upside down', `namespace not found for ${refused.join(', ')}`, UNTOUCHED);
      assert.ok(refused.includes('Deployment') && refused.includes('RoleBinding'), refused.join());
      assert.ok(!refused.some((kind) => kind.endsWith('WebhookConfiguration')));
    });

    it('applied once more it is complete, and still nothing is refused', async () => {
      assert.deepEqual(stage.apply(render('base')), { status: 0, said: '' });
      assert.deepEqual(await stage.verdict(), UNTOUCHED);
    });

    it('the webhook is ready, and its CA is not in its configurations: it waits for that', async () => {
      stage.certificates();
      const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/plumbline-webhook';
      const { webhooks } = (await stage.plane.client.get(path)) as {
        webhooks: { clientConfig: { caBundle: string } }[];
      };
      bundle = webhooks[0]?.clientConfig.caBundle ?? '';
      await stage.setAuthority(undefined);
      webhook = await stage.startWebhook();
      await until('it to say so', async () => /has no CA bundle/.test(webhook.waits()));
      const got = await stage.verdict();
      tell('cert-manager without its cainjector', webhook.waits(), got);
      assert.deepEqual(got, UNTOUCHED);
    });

    it('another CA is there: the API server does not reach the webhook, and does not switch it on', async () => {
      await stage.setAuthority(Buffer.from(createCertificateAuthority('other').cert).toString('base64'));
      await until('it to say so', async () =>
        /failed calling webhook "required\.plumbline\.dev"/.test(webhook.waits()),
      );
      assert.match(webhook.waits(), /certificate/);
      const got = await stage.verdict();
      tell('a CA that is not the webhook’s', webhook.waits().slice(0, 100), got);
      assert.deepEqual([got, await stage.isSwitchedOn()], [UNTOUCHED, false]);
    });

    it('with its CA it is switched on, and does its work', async () => {
      await stage.setAuthority(bundle);
      await until('the webhook to be switched on', stage.isSwitchedOn);
      await until('launchers to be padded', async () => (await stage.verdict()).asking === '10 CPUs');
      const got = await stage.verdict();
      tell('the CA is injected', 'the webhook switches itself on', got);
      assert.deepEqual(got, { ...UNTOUCHED, asking: '10 CPUs', aligned: '4 CPUs' });
    });

    it('an outage then refuses what asked, and nothing else', async () => {
      await webhook.stop();
      await until('the outage to be seen', async () => (await stage.verdict()).asking !== '10 CPUs');
      const { unrelated, networks, asking, aligned } = await stage.verdict();
      tell('an outage later', 'failed calling webhook', { unrelated, networks, asking: 'refused', aligned: 'refused' });
      assert.deepEqual([unrelated, networks], [UNTOUCHED.unrelated, UNTOUCHED.networks]);
      assert.match(asking, /failed calling webhook "launcher\.plumbline\.dev"/);
      assert.match(aligned, /failed calling webhook "opt-in\.plumbline\.dev"/);
    });

    it('only the namespace is deleted: its webhook configurations stay, and refuse nothing', async () => {
      assert.equal(stage.kubectl(['delete', 'namespace', SYSTEM, '--wait=false']).status, 0);
      await until('nothing to be refused', async () => (await stage.verdict()).asking === UNTOUCHED.asking);
      const got = await stage.verdict();
      tell('only the namespace deleted', 'deleted', got);
      assert.deepEqual(got, UNTOUCHED);
    });
  });
});
