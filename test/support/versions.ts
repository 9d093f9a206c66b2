/** On the global object, because the test files and the runner may each get their own instance of this module. */
const registry = globalThis as typeof globalThis & { plumblineVersions?: Map<string, string> };
registry.plumblineVersions ??= new Map();
const versions = registry.plumblineVersions;

/** Records the version of a real part that a test runs against. @param name `Kubernetes` */
export function noteVersion(name: string, version: string): void {
  versions.set(name, version);
}

/** The recorded versions by the name of the part. */
export const notedVersions = (): readonly (readonly [name: string, version: string])[] => [...versions];
