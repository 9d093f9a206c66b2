import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseReference } from '../../../cli/explain/reference.ts';
import { CliError, EXIT } from '../../../cli/support/exit-status.ts';
import { tempDirectories } from '../../support/files.ts';
import { kubeconfigOf } from '../../support/kubeconfig.ts';
import { listenOnLoopback } from '../../support/processes.ts';
import { useCluster } from '../cluster-fixture.ts';
import { assertFails, buildCli, plumbline } from '../run.ts';

describe('arguments of plumbline explain', function () {
  this.timeout(120_000);
  const temp = tempDirectories();
  before(buildCli);
  const cases: readonly [readonly [string, string?], string | undefined, unknown][] = [
    [['vm', 'firewall'], undefined, ['vm', undefined, 'firewall']],
    [['vmi', 'firewall'], 'tenants', ['vm', 'tenants', 'firewall']],
    [['vm/firewall'], 'tenants', ['vm', 'tenants', 'firewall']],
    [['virtualmachine.kubevirt.io/firewall'], undefined, ['vm', undefined, 'firewall']],
    [['pod/launcher'], undefined, ['pod', undefined, 'launcher']],
    [['pod', 'demo/launcher'], undefined, ['pod', 'demo', 'launcher']],
    [['pod/demo/launcher'], undefined, ['pod', 'demo', 'launcher']],
    [['tenants/firewall'], undefined, [undefined, 'tenants', 'firewall']],
    [['tenants/firewall'], 'tenants', [undefined, 'tenants', 'firewall']],
    [['firewall'], 'tenants', [undefined, 'tenants', 'firewall']],
    // A namespace with the name of a kind needs the kind before it.
    [['vm', 'vm/firewall'], undefined, ['vm', 'vm', 'firewall']],
  ];
  for (const [words, flag, expected] of cases) {
    it(`${words.join(' ')}${flag === undefined ? '' : ` -n ${flag}`}`, () => {
      const { kind, namespace, name } = parseReference(words[0], words[1], flag);
      assert.deepEqual([kind, namespace, name], expected);
    });
  }

  const faults: readonly [readonly [string, string?], string | undefined, RegExp][] = [
    [['vm'], undefined, /missing required argument 'name'/],
    [['node', 'x'], undefined, /only a VM or a pod can be explained; for a node: plumbline top x$/],
    [['pvc', 'x'], undefined, /unknown kind 'pvc': use vm, vmi, pod$/],
    [['a/b/c'], undefined, /'a\/b\/c' is not a name: expected vm NAME/],
    [['vm/'], undefined, /is not a name/],
    [['/x'], undefined, /is not a name/],
    [['a/x'], 'b', /conflicting namespaces: a in a\/x, and -n b/],
  ];
  for (const [words, flag, message] of faults) {
    it(`${words.join(' ')}${flag === undefined ? '' : ` -n ${flag}`}: refused`, () => {
      assert.throws(
        () => parseReference(words[0], words[1], flag),
        (error) => error instanceof CliError && error.status === EXIT.usage && message.test(error.message),
      );
    });
  }

  describe('in a cluster', () => {
    const { run } = useCluster(async (made) => {
      await made.namespace('demo');
      await made.pod('launcher', { namespace: 'demo' });
    });

    it('name a pod by namespace and name, with or without the kind', async () => {
      for (const words of [['pod', 'demo/launcher'], ['pod/launcher', '-n', 'demo'], ['demo/launcher']]) {
        const { status, stdout, stderr } = await run('explain', ...words, '-o', 'name');
        assert.deepEqual([status, stdout, stderr], [0, 'pod/launcher\n', ''], words.join(' '));
      }
    });

    it('neither a VM nor a pod: status 4', async () => {
      assertFails(await run('explain', 'demo/nothing'), 4, /there is no VM nothing in namespace demo/);
    });

    it('--as sends every request as that user', async () => {
      const asked: (string | undefined)[] = [];
      const server = createServer((request, response) => {
        asked.push(request.headers['impersonate-user'] as string | undefined);
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"kind":"Status","code":404}');
      });
      const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
      try {
        const kubeconfig = join(temp(), 'config');
        writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf({ server: url }, { token: 'abc' })));
        const { status } = await plumbline(['explain', 'pod', 'x', '--as', 'jane@example.com'], { kubeconfig });
        assert.equal(status, 4);
        assert.deepEqual([...new Set(asked)], ['jane@example.com']);
        const wrong = await plumbline(['explain', 'pod', 'x', '--as', 'jane doe'], { kubeconfig });
        assert.equal(wrong.status, 2);
      } finally {
        server.close();
      }
    });
  });
});
