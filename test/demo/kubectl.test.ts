import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createEmbeddedCluster } from '../../cli/demo/cluster.ts';
import { VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { readBlocks } from '../support/guide-blocks.ts';
import { kubectls, needs } from '../support/parts.ts';
import { runLine } from '../support/run-program.ts';
import { until } from '../support/until.ts';
import { type OutageStage, startOutageStage } from './outages/stage.ts';

const PAGES = [
  'docs/get-started/quickstart.md',
  ...readdirSync(join(root, 'docs/tasks'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/tasks/${name}`),
];

/** Commands of the pages that need what the embedded cluster does not have. */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/ patch kubevirt /, 'it has no KubeVirt object'],
  [/-f https:|-f -$|-k \.$|-f manifests\//, 'it has no installation by manifests; test/real/install runs these'],
];

/** Words of the pages that stand for the reader's own, and a label that has to be changed already. */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/\bNAMESPACE\b/g, 'demo'],
  [/\bNAME\b/g, 'firewall'],
  [/-n tenants\b/g, '-n demo'],
];

const INSTEAD = /add --dry-run=client -o yaml to this kubectl command, and pipe it to: kubectl apply -f -/;

/** What a command prints, where its status alone says little. */
const PRINTED: readonly (readonly [RegExp, RegExp])[] = [
  [/^kubectl (-n demo )?create /, INSTEAD],
  [/kubectl wait/, /condition met/],
  [/kubectl delete -f/, /"two-cores" deleted/],
];

/** A pod as it is created, kept and changed. */
const POD = { apiVersion: 'v1', kind: 'Pod', spec: { containers: [{ name: 'c', image: 'i' }] } };
const APPLY = (app: string) => {
  const metadata = { name: 'web', namespace: 'demo', labels: { app } };
  return `echo '${JSON.stringify({ ...POD, metadata })}' | kubectl apply -f -`;
};
const APPLY_TITLE = 'kubectl apply creates, keeps and changes an object';
const APPLIED = /pod\/web created\npod\/web unchanged\npod\/web configured\n/;

/** More that a newcomer types, and what it prints. */
const MORE: readonly (readonly [command: string, printed: RegExp, title?: string])[] = [
  ['kubectl get pods -A --chunk-size=2 -o name', /(?:pod\/\S+\n){5}/],
  ['kubectl get crds', /nodetopologies\.plumbline\.dev/],
  ['kubectl explain vm.spec.running', /running/],
  ['kubectl -n plumbline-system logs deployment/plumbline-webhook --tail=2', /^(?:\{.*\}\n){2}$/],
  ['kubectl -n plumbline-system logs daemonset/plumbline-node-agent --tail=1', /^\{.*\}$/m],
  ['kubectl -n plumbline-system logs deployment/plumbline-scheduler -c extender --tail=1', /^\{.*\}\n$/],
  ['kubectl -n plumbline-system logs deployment/plumbline-scheduler -c kube-scheduler', /runs nothing here/],
  ['kubectl -n plumbline-system rollout status deployment/plumbline-webhook --timeout=10s', /successfully rolled out/],
  ['kubectl create namespace red --dry-run=client -o yaml | kubectl apply -f -', /namespace\/red created/],
  ['kubectl wait --for=create namespace/red --timeout=10s', /condition met/],
  ['kubectl delete namespace red', /"red" deleted/],
  ['kubectl wait --for=delete namespace/red --timeout=10s', /^$/],
  ['kubectl describe node numa1', /plumbline\.dev\/AgentReady/],
  ['kubectl cordon numa1 && kubectl uncordon numa1', /numa1 uncordoned/],
  ['kubectl auth can-i create vms -n demo', /yes/],
  ['kubectl api-resources --api-group=plumbline.dev', /ntopo/],
  ['kubectl get nodetopologies', /^NAME +CPUS +FREE +NETWORKS +POLICY +TOPOLOGY +KNOWN +LAST-REPORT +AGE\n/],
  ['kubectl -n plumbline-system get pods', /^NAME +READY +STATUS +RESTARTS +AGE\n\S+ +\d\/\d +Running +0 +\d+/],
  ['kubectl get po,ns -A', /namespace\/kube-system +Active/],
  ['for name in vm vms vmi vmis ntopo net-attach-def po no cm; do kubectl get $name || exit; done; echo all', /^all$/m],
  ['kubectl apply --server-side -f docs/get-started/quickstart-vm.yaml', /serverside-applied/],
  [`${APPLY('one')} && ${APPLY('one')} && ${APPLY('two')}; kubectl -n demo delete pod web`, APPLIED, APPLY_TITLE],
];

/** A command has to end within it, whatever its own --timeout is. */
const MAX_SECONDS = 70;

const versionOf = (kubectl: string): string =>
  JSON.parse(execFileSync(kubectl, ['version', '--client', '-o', 'json'], { encoding: 'utf8' })).clientVersion
    .gitVersion;

/** The oldest and the newest at hand. */
function chosen(): { readonly path: string; readonly version: string }[] {
  const byVersion = kubectls()
    .map((path) => ({ path, version: versionOf(path) }))
    .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
  const [oldest, newest] = [byVersion.at(0), byVersion.at(-1)];
  return oldest === undefined || newest === undefined || oldest === newest ? byVersion : [oldest, newest];
}

const replaced = (line: string) => REPLACED.reduce((text, [pattern, by]) => text.replace(pattern, by), line);

const commands = PAGES.flatMap((page) =>
  readBlocks(join(root, page))
    .filter(({ mark }) => !mark.startsWith('not run'))
    .flatMap(({ lines }) =>
      lines
        .join('\n')
        .replaceAll(/\\\n\s*/g, '')
        .split('\n'),
    )
    .filter((line) => /^kubectl |\| kubectl /.test(line) && !ELSEWHERE.some(([pattern]) => pattern.test(line)))
    .map((line) => ({ page: basename(page), line: replaced(line) })),
);

describe('kubectl on the embedded cluster', function () {
  needs('linux');
  needs('kubectl');
  this.timeout(300_000);

  it('is tried with the commands of every page that has one that can run there', () => {
    const pages = new Set(commands.map(({ page }) => page));
    assert.ok(commands.length >= 15 && pages.size >= 4, [...pages].join());
  });

  for (const { path, version } of chosen()) {
    describe(version, () => {
      let stage: OutageStage;
      const temp = tempDirectories();
      let folder: string;
      before(async () => {
        stage = await startOutageStage(createEmbeddedCluster);
        folder = temp();
        mkdirSync(join(folder, 'bin'));
        symlinkSync(path, join(folder, 'bin/kubectl'));
      });
      after(() => stage?.stop());

      const run = (line: string) => {
        const PATH = `${join(folder, 'bin')}:${process.env['PATH']}`;
        const env = { ...process.env, PATH, KUBECONFIG: stage.kubeconfig, KUBECACHEDIR: join(folder, 'cache') };
        return runLine(line, { cwd: root, env, timeout: MAX_SECONDS * 1000 });
      };

      for (const { page, line } of commands) {
        it(`${page}: ${line}`, async () => {
          const { status, output } = await run(line);
          const [, printed = /\S/] = PRINTED.find(([pattern]) => pattern.test(line)) ?? [];
          assert.match(output, printed);
          if (printed !== INSTEAD) assert.equal(status, 0, output);
        });
      }
      for (const [line, printed, title = line] of MORE) {
        it(title, () => until(`${line} to print ${printed}`, async () => printed.test((await run(line)).output)));
      }
      it('a definition that is deleted takes its objects along, and can be applied again', async () => {
        await run('kubectl apply -f docs/get-started/quickstart-vm.yaml');
        const deleted = await run('kubectl delete crd virtualmachines.kubevirt.io');
        assert.deepEqual([deleted.status, stage.cluster.client.list(VIRTUAL_MACHINES)], [0, []], deleted.output);
        const { output } = await run('kubectl get vms -A');
        assert.match(output, /doesn't have a resource type "vms"|could not find the requested resource/);
      });
      it('logs -f shows what is written after it began', async () => {
        const { logFile } = stage.installed.webhook;
        const writing = setInterval(() => writeFileSync(logFile, 'the line of the test\n', { flag: 'a' }), 200);
        const logs = 'kubectl -n plumbline-system logs -f --request-timeout=20s deployment/plumbline-webhook --tail=0';
        const { output } = await run(`${logs} | grep -m 1 "of the test"`);
        clearInterval(writing);
        assert.match(output, /the line of the test/);
      });
      it('get -w follows changes', async () => {
        const map = 'kubectl -n demo create configmap w-$RANDOM --dry-run=client -o yaml';
        const create = `while sleep 0.5; do ${map} | kubectl apply -f -; done > /dev/null & creating=$!`;
        const watch = 'kubectl -n demo get cm -w -o name --request-timeout=20s | grep -m 2 w-';
        assert.match((await run(`${create}; ${watch}; kill $creating`)).output, /configmap\/w-/);
      });
    });
  }
});
