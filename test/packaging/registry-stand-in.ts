import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

/** An npm registry on loopback with only the given packages, as they are in node_modules. */
export interface Registry {
  readonly url: string;
  /** The requested packages in order, including missing ones. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

export async function startRegistry(names: readonly string[], directory: string): Promise<Registry> {
  const packages = new Map(names.map((name) => [name, packed(name, directory)]));
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/').slice(1);
    const { host = '' } = request.headers;
    const tarball = [...packages.values()].find(({ file }) => path === `-/${file}`);
    if (tarball !== undefined) {
      response.end(tarball.bytes);
      return;
    }
    requests.push(path);
    const content = packages.get(path);
    if (content === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const { manifest, file, integrity } = content;
    const version = { ...manifest, dist: { tarball: `http://${host}/-/${file}`, integrity } };
    const document = {
      name: path,
      'dist-tags': { latest: manifest.version },
      versions: { [manifest.version]: version },
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    requests,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A package of node_modules as npm packs it, without files that only a build from source needs (MBs). */
function packed(name: string, directory: string) {
  const source = join(root, 'node_modules', name);
  const file = `${name.replace('@', '').replace('/', '-')}.tgz`;
  const sources = ['vendor', 'doc', 'lib'].map((folder) => `--exclude=./${folder}`);
  const archive = ['-czf', join(directory, file), ...sources, '--transform', 's,^\\.,package,', '-C', source, '.'];
  execFileSync('tar', archive);
  const bytes = readFileSync(join(directory, file));
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as { version: string };
  return { file, bytes, manifest, integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}` };
}
