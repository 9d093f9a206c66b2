/** The files that an image adds to its base. */
export interface Contents {
  /** Files and folders of dist/, for /plumbline. */
  readonly bundles: readonly string[];
  /** Whether the image needs koffi. */
  readonly native?: boolean;
  /** Whether to add the CNI gate. */
  readonly gate?: boolean;
}

export const IMAGES: Readonly<Record<string, Contents>> = {
  webhook: { bundles: ['webhook.cjs', 'kubeconfig.cjs'] },
  'scheduler-plugin': { bundles: ['scheduler-plugin.cjs', 'kubeconfig.cjs'] },
  console: { bundles: ['console.cjs', 'kubeconfig.cjs', 'console'] },
  // The gate is static: the agent copies it to the node, whose C library may be a different one.
  'node-agent': { bundles: ['node-agent.cjs', 'kubeconfig.cjs', 'device-plugin-worker.cjs'], native: true, gate: true },
};

/** Architectures of the images, by Node.js' names. */
export const ARCHITECTURES = ['x64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** The architecture with this name in images (`amd64`) or in Node.js (`x64`); undefined for any other name. */
export function architectureOf(name: string): Architecture | undefined {
  return name === 'amd64' ? 'x64' : ARCHITECTURES.find((one) => one === name);
}
