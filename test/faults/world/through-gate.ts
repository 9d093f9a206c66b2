import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';

interface Kubeconfig {
  readonly clusters: { readonly cluster: { server: string; 'certificate-authority-data': string } }[];
}

/** The API server of a kubeconfig file. */
export async function serverOf(file: string): Promise<{ readonly url: string; readonly ca: string }> {
  const found = (parse(await readFile(file, 'utf8')) as Kubeconfig).clusters[0]?.cluster;
  if (found === undefined) throw new Error(`${file} names no cluster`);
  return { url: found.server, ca: Buffer.from(found['certificate-authority-data'], 'base64').toString() };
}

/** Changes the port of the server in a kubeconfig file. Returns its path. */
export async function redirect(file: string, port: number): Promise<string> {
  const content = parse(await readFile(file, 'utf8')) as Kubeconfig;
  for (const { cluster } of content.clusters) {
    cluster.server = `https://127.0.0.1:${port}`;
  }
  await writeFile(file, stringify(content));
  return file;
}
