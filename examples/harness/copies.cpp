// Ways to hand over a std::vector<double>, for: dlprof time --program ./copies
// Build: g++ -O2 -std=c++17 -o copies copies.cpp
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using Vector = std::vector<double>;
struct Span { double* data; size_t size; };

std::unique_ptr<Vector> source;  // `make` makes it
Vector copied;                   // `look` keeps its result here
Span viewed;

void use(void* result) { asm volatile("" : : "r"(result) : "memory"); }  // no dead code

long number(const std::string& line, const char* name) {  // the number behind "name":
    size_t at = line.find(std::string("\"") + name + "\":");
    at = line.find_first_of("0123456789", at);
    return std::strtol(line.c_str() + at, nullptr, 10);
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        auto asks = [&](const char* what) { return line.find(what) != std::string::npos; };
        if (asks("hello")) {
            std::printf("{\"protocol\":1,\"language\":\"C++\",\"name\":\"std\",\"version\":\"17\","
                        "\"pid\":%d,\"paths\":[{\"code\":\"std::vector(v)\",\"promise\":\"copy\"},"
                        "{\"code\":\"span(v.data(), v.size())\",\"promise\":\"view\"}]}\n", getpid());
        } else if (asks("make")) {
            bool is_one_axis = line.find_first_of(",]", line.find('[')) == line.find(']');
            if (asks("\"float64\"") && is_one_axis) {
                source = std::make_unique<Vector>(number(line, "shape"), 1.0);
                std::printf("{\"address\":%zu}\n", (size_t)source->data());
            } else {
                std::printf("{\"unsupported\":\"this example makes one axis of float64\"}\n");
            }
        } else if (asks("time")) {
            long path = number(line, "path"), calls = number(line, "calls");
            auto begin = std::chrono::steady_clock::now();
            for (long call = 0; call < calls; call++) {
                if (path == 0) { Vector result(*source); use(result.data()); }
                else { Span result{source->data(), source->size()}; use(&result); }
            }
            auto time = std::chrono::steady_clock::now() - begin;
            std::printf("{\"ns\":%lld}\n", (long long)std::chrono::nanoseconds(time).count());
        } else if (asks("look")) {
            if (number(line, "path") == 0) {
                copied = Vector(*source);
                viewed = {copied.data(), copied.size()};
            } else {
                viewed = {source->data(), source->size()};
            }
            double before = viewed.data[0];
            source->at(0) = before + 1;
            std::printf("{\"address\":%zu,\"shape\":[%zu],\"dtype\":\"float64\",\"sees_write\":%s}\n",
                        (size_t)viewed.data, viewed.size,
                        viewed.data[0] != before ? "true" : "false");
        } else if (asks("drop")) {
            source.reset();
            std::printf("{\"ok\":true}\n");
        } else {
            return 0;
        }
        std::fflush(stdout);
    }
}
