// Ways to hand over a std::vector<double>, for: dlprof time --program ./copies
// Build: g++ -O2 -std=c++17 -o copies copies.cpp
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

const char* HELLO = R"-({"protocol":1,"language":"C++","name":"std","version":"17","paths":[)-"
                    R"-({"code":"std::vector(v)","promise":"copy"},)-"
                    R"-({"code":"span(v.data(), v.size())","promise":"view"}]})-";

using Vector = std::vector<double>;
std::unique_ptr<Vector> source;  // `make` makes it

struct Result { Vector copy; double* data; };

Result convert(int path) {
    if (path == 1) return {{}, source->data()};
    Vector copy(*source);
    double* data = copy.data();
    return {std::move(copy), data};
}

void use(void* result) { asm volatile("" : : "r"(result) : "memory"); }  // no dead code

int main() {
    Result result;  // lives until the next `look`
    char line[1000], dtype[21];
    long size, path, calls;
    while (std::fgets(line, sizeof line, stdin)) {
        if (std::strstr(line, "hello")) {
            std::puts(HELLO);
        } else if (std::sscanf(line, R"({"do":"make","shape":[%ld],"dtype":"%20[a-z0-9]")", &size, dtype) == 2
                   && !std::strcmp(dtype, "float64")) {
            source = std::make_unique<Vector>(size, 1.0);
            std::printf("{\"address\":%zu}\n", (size_t)source->data());
        } else if (std::sscanf(line, R"({"do":"time","path":%ld,"calls":%ld)", &path, &calls) == 2) {
            auto begin = std::chrono::steady_clock::now();
            while (calls--) use(convert(path).data);
            std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
            std::printf("{\"ns\":%ld}\n", (long)time.count());
        } else if (std::sscanf(line, R"({"do":"look","path":%ld)", &path) == 1) {
            result = convert(path);
            double before = result.data[0];
            (*source)[0] = before + 1;
            std::printf(R"({"address":%zu,"shape":[%zu],"dtype":"float64","sees_write":%s})" "\n",
                        (size_t)result.data, source->size(), result.data[0] != before ? "true" : "false");
        } else if (std::strstr(line, "drop")) {
            source.reset();
            std::puts("{\"ok\":true}");
        } else {
            std::puts("{\"unsupported\":\"this example makes one axis of float64\"}");
        }
        std::fflush(stdout);
    }
}
