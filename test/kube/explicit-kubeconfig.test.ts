import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { tempDirectories, writeTree } from '../node-agent/support.ts';
import { root } from '../support/bundles.ts';
import { endsWithUs } from '../support/children.ts';

const DAEMONS: Readonly<Record<string, readonly string[]>> = {
  webhook: [],
  'scheduler-plugin': [],
  'node-agent': ['--node-name', 'worker-0'],
};

describe('a daemon outside of a pod without --kubeconfig', function () {
  this.timeout(300_000);
  const temp = tempDirectories();

  for (const [name, args] of Object.entries(DAEMONS)) {
    it(`${name}: exits with 2, a line for people and a line of the log, and contacts no cluster of KUBECONFIG and ~/.kube/config`, async () => {
      const server = createServer((socket) => socket.destroy());
      const dialled = once(server, 'connection').then(() => 'it dialled the cluster of the current context');
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const home = temp();
      const { port } = server.address() as AddressInfo;
      const access = { server: `https://127.0.0.1:${port}`, ca: createCertificateAuthority('x').cert, token: 'secret' };
      writeTree(home, { '.kube/config': kubeconfig(access) });
      const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: join(home, '.kube/config') };
      const program = ['--import', 'tsx', join(root, name, 'main.ts'), ...args];
      const child = spawn(process.execPath, program, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
      endsWithUs(child);
      const stderrText = text(child.stderr);
      const ended = once(child, 'exit').then(([status]) => status as number | null);
      try {
        assert.equal(await Promise.race([ended, dialled]), 2);
        assert.match(
          await stderrText,
          new RegExp(
            `^plumbline-${name}: this is not a pod .*: give --kubeconfig\\n{"level":"fatal",.*"component":"${name}",.*"msg":"startup failed"}\\n$`,
          ),
        );
      } finally {
        child.kill('SIGKILL');
        server.close();
      }
    });
  }
});
