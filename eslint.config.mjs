import tseslint from 'typescript-eslint';

/** The folders of labextension/src: each may import from those below it only. */
const LAYERS = [
  ['plugins'],
  ['table', 'details'],
  ['panel', 'live', 'results', 'resultNotebook', 'notify', 'statusBar'],
  ['addJobView', 'groupCommands'],
  ['jobCommands'],
  ['submit', 'dialog'],
  ['ui'],
  ['jobs', 'settings']
];

const layers = LAYERS.flatMap((layer, depth) =>
  layer.map(name => ({
    files: [`labextension/src/${name}/**`, `labextension/src/${name}.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: LAYERS.slice(0, depth + 1)
            .flat()
            .filter(other => other !== name)
            .map(other => ({
              regex: `^\\.\\.?/${other}(/|$)`,
              message: `${name} does not import from ${other}.`
            }))
        }
      ]
    }
  }))
);

export default tseslint.config(
  {
    ignores: ['labextension/src/api.ts', '**/lib/**', 'labextension/style/**']
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'tsconfig.test.json'] }
    },
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      // Signals take a method and its object: signal.connect(this.method, this).
      '@typescript-eslint/unbound-method': 'off',
      curly: 'error',
      eqeqeq: 'error',
      'no-console': ['error', { allow: ['warn', 'error'] }]
    }
  },
  {
    files: ['labextension/src/**'],
    rules: {
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', 50]
    }
  },
  ...layers
);
