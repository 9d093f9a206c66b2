import { writeFileSync } from 'node:fs';
import { COMPONENTS, realComponents } from './openapi-stage.ts';

/**
 * `npx tsx test/sandbox/api-server/generate.ts`: writes the schemas that the sandbox's API server serves, from a real
 * control plane (KUBEBUILDER_ASSETS) with KubeVirt's definitions (KUBEVIRT_ASSETS). One line for each schema, so that
 * changes are readable.
 */
const components = Object.entries(await realComponents());
const lines = components.map(([name, schema]) => `${JSON.stringify(name)}:${JSON.stringify(schema)}`);
writeFileSync(COMPONENTS, `{\n${lines.join(',\n')}\n}\n`);
console.log(`${components.length} schemas in ${COMPONENTS}`);
